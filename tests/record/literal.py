"""What each column and score means, written out sample by sample in Python's own numbers."""

import math

NAN = math.nan


class Literal:
    """Every step of every sample, kept whole; nothing is computed before it is asked for."""

    def __init__(self, num_samples, num_classes):
        self.num_samples, self.num_classes = num_samples, num_classes
        self.steps = [[] for _ in range(num_samples)]
        self.observed = 0

    def observe(self, indices, logits, targets, epoch=None):
        """One batch; without an epoch it is how often N samples have been observed before it."""
        epoch = self.observed // self.num_samples if epoch is None else epoch
        for index, row, label in zip(indices, logits, targets, strict=True):
            p = softmax(row)
            others = [q for c, q in enumerate(p) if c != label]
            self.steps[index].append(
                {
                    "label": label,
                    "prediction": row.index(max(row)),
                    "probability": p[label],
                    "margin": p[label] - max(others),
                    "loss": log_sum_exp(row) - row[label],
                    "epoch": epoch,
                }
            )
        self.observed += len(indices)

    def scores(self, window=10, decay=0.7):
        """The scores of all samples, by name."""
        rows = [self._scores(steps, window, decay) for steps in self.steps]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _scores(self, steps, window, decay):
        label = steps[0]["label"] if steps else -1
        right = [step["prediction"] == step["label"] for step in steps]
        last = [step["prediction"] for step in steps][-window:]
        p = [step["probability"] for step in steps]
        mean = sum(p) / len(p) if p else NAN
        running = 0.0
        for step in steps:
            running = decay * running + (1 - decay) * step["margin"]
        turns = [steps[i]["epoch"] for i in range(1, len(steps)) if right[i] != right[i - 1]]
        learnt = [step["epoch"] for step, good in zip(steps, right, strict=True) if good]
        return {
            "label": label,
            "majority": majority(last),
            "agreement": last.count(label) / len(last) if last else NAN,
            "uncertainty": uncertainty(last, self.num_classes),
            "confidence": mean,
            "variability": math.sqrt(sum((v - mean) ** 2 for v in p) / len(p)) if p else NAN,
            "correctness": sum(right) / len(right) if right else NAN,
            "mean_margin": sum(step["margin"] for step in steps) / len(steps) if steps else NAN,
            "running_margin": running,
            "times_seen": len(steps),
            "times_right": sum(right),
            "last_loss": steps[-1]["loss"] if steps else NAN,
            "forgotten": sum(right[i - 1] and not right[i] for i in range(1, len(right))),
            "learnt_at": learnt[0] if learnt else -1,
            "turned_at": turns[-1] if turns else -1,
        }


def softmax(row):
    """Probabilities of one row of logits."""
    total = log_sum_exp(row)
    return [math.exp(x - total) for x in row]


def log_sum_exp(row):
    """The logarithm of the sum of the exponentials."""
    most = max(row)
    return most + math.log(math.fsum(math.exp(x - most) for x in row))


def majority(labels):
    """The label that occurs most often, of several the one that occurs last; -1 of none."""
    if not labels:
        return -1
    most = max(labels.count(label) for label in labels)
    return next(label for label in reversed(labels) if labels.count(label) == most)


def uncertainty(labels, num_classes):
    """Normalised entropy (Eq. 6); 1 of no labels."""
    shares = [labels.count(label) / len(labels) for label in set(labels)]
    return sum(-p * math.log(p) for p in shares) / math.log(num_classes) if labels else 1.0
