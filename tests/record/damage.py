"""Damages states of records at random, and says what becomes of each: python tests/record/damage.py 4000.

Each kind of damage gives a state that no training leaves behind, or one that is still possible: `is_possible` tells
them apart by a slow look of its own. A record must take the possible ones, and refuse the others by ValueError or
TypeError with one sentence, holding what it held before.
"""

import random
import sys
import warnings
from functools import cache

import torch

from carpediem import RandomBatch
from carpediem.record import Record, TimesSeen
from record.material import every_column, same, trained

N, K, WINDOW = 30, 4, 5


@cache
def sound(seed):
    """The state of a record after some steps."""
    return trained(N, K, window=WINDOW, seed=seed).state_dict()


@cache
def foreign():
    """States of other objects."""
    return [
        trained(N + 1, K).state_dict(),
        trained(N, K + 1, window=WINDOW).state_dict(),
        trained(N, K, window=WINDOW + 1).state_dict(),
        trained(N, K, window=WINDOW, keys=range(N)).state_dict(),
        trained(N, K, window=WINDOW, decay=0.5).state_dict(),
        Record(N, K).state_dict(),
        Record(N, K, columns=[TimesSeen()]).state_dict(),
        RandomBatch(N, K, 10).state_dict(),
        torch.nn.Linear(2, 2).state_dict(),
        {},
    ]


def copy(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def tensors(state):
    return sorted(name for name, value in state.items() if isinstance(value, torch.Tensor))


def numbers(state):
    return sorted(name for name, value in state.items() if isinstance(value, int) and name != "num_samples")


def places(tensor, rng):
    """Some random places of a tensor."""
    flat = tensor.view(-1)
    return flat, torch.tensor([rng.randrange(flat.numel()) for _ in range(rng.randint(1, 4))])


def a_value(state, rng):
    name = rng.choice(list(state))
    state[name] = rng.choice(
        [None, "x", 1.5, -7, 2**70, [1], {}, b"", True, object(), torch.tensor(3), float("nan")]
    )


def a_type(state, rng):
    name = rng.choice(tensors(state))
    others = [d for d in (torch.int64, torch.float32, torch.float16, torch.bool) if d != state[name].dtype]
    state[name] = state[name].to(rng.choice(others))


def a_shape(state, rng):
    name = rng.choice(tensors(state))
    t = state[name]
    state[name] = rng.choice(
        [t[..., :-1], t[None], torch.cat((t, t), dim=-1), t.reshape(-1)[:0], t.reshape(-1)[0]]
    )


def a_key(state, rng):
    name = rng.choice(list(state))
    how = rng.randrange(4)
    if how == 0:
        del state[name]
    elif how == 1:
        state[rng.choice([3, None, ("a",), 2.5])] = state[name]
    elif how == 2:
        state[name + rng.choice(["x", ".values", ".began"])] = state[name]
    else:
        state[rng.choice([7, b"x"])] = state.pop(name)


def not_a_number(state, rng):
    name = rng.choice([n for n in tensors(state) if state[n].is_floating_point()])
    flat, where = places(state[name], rng)
    flat[where] = rng.choice([float("nan"), float("inf"), -float("inf")])


def a_negative_count(state, rng):
    name = rng.choice([n for n in tensors(state) if state[n].dtype in (torch.int32, torch.int64)])
    flat, where = places(state[name], rng)
    flat[where] = -rng.randint(2, 10**6)


def a_label_out_of_range(state, rng):
    name = rng.choice(["GivenLabel().values", f"LastLabels(window={WINDOW}).labels"])
    flat, where = places(state[name], rng)
    flat[where] = rng.randint(K, 100)


def a_cell(state, rng):
    """Any value of the type in any place: often one that another column contradicts."""
    name = rng.choice(tensors(state))
    flat, where = places(state[name], rng)
    if flat.is_floating_point():
        flat[where] = rng.choice([-1e9, -3.0, -0.5, 0.0, 0.25, 1.0, 40.0, 1e30])
    elif flat.dtype is torch.bool:
        flat[where] = ~flat[where]
    else:
        info = torch.iinfo(flat.dtype)
        flat[where] = rng.choice([info.min, info.max, 0, 1, 2, 3, 5, rng.randint(0, 100)])


def a_number(state, rng):
    state[rng.choice(numbers(state))] = rng.choice([-5, -2, 10**6, 2**64, 3])


def a_strange_tensor(state, rng):
    name = rng.choice(tensors(state))
    t = state[name]
    with warnings.catch_warnings():  # torch's, that nested tensors are new
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([t.reshape(-1), t.reshape(-1)[:2]])
    kinds = [t.to_sparse(), t.to("meta"), nested]
    if t.is_floating_point():
        kinds += [t.clone().requires_grad_(), torch.nn.Parameter(t.clone())]
    state[name] = rng.choice(kinds)


def of_another(state, rng):
    other = rng.choice(foreign())
    state.clear()
    state.update({name: copy(value) for name, value in other.items()})


def no_dictionary(state, rng):
    return rng.choice([None, 3, "state", [state], torch.zeros(3), [("num_samples", N)]])


KINDS = (
    *(a_value, a_type, a_shape, a_key, not_a_number, a_negative_count, a_label_out_of_range),
    *(a_cell, a_number, a_strange_tensor, of_another, no_dictionary),
)


def is_possible(state):
    """Whether some training may have left this state; sample by sample, of states whose types and shapes are right."""
    last = f"LastLabels(window={WINDOW})"
    values = {
        name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in state.items()
    }
    began = {name.rpartition(".")[0]: value for name, value in values.items() if name.endswith(".began")}
    if not (0 <= values["observed"] < 2**63 and -1 <= values["epoch"] < 2**31 and min(values["faults"]) >= 0):
        return False
    if not all(0 <= value <= values["observed"] for value in began.values()):
        return False
    total = 0
    for i in range(N):
        get = lambda name: values[name][i]  # noqa: E731, B023
        window = [row[i] for row in values[f"{last}.labels"]]
        cursor = values[f"{last}.cursor"][i]
        filled = min(cursor, WINDOW)
        seen = get("TimesSeen().values")
        total += seen
        learnt, turned, was = get("FirstLearnt().values"), get("LastTurn().values"), get("LastTurn().right")
        p, squares = (row[i] for row in values["Moments().sums"])
        forgotten, right = get("Forgetting().values"), get("Forgetting().right")
        loss, running = get("LastLoss().values"), get("RunningMargin(decay=0.7).values")
        sound = (
            cursor < 2 * WINDOW
            and all((0 <= v < K) if row < filled else v == 255 for row, v in enumerate(window))
            and (-1 <= get("GivenLabel().values") < K)
            and get("TimesRight().values") >= 0
            and (learnt == 2**31 - 1 or 0 <= learnt <= values["epoch"])
            and -1 <= turned <= values["epoch"]
            and was in (-1, 0, 1)
            and (turned < 0 or was >= 0)
            and forgotten >= 0
            and abs(running) <= 1
            and loss != -float("inf")
            and get("MeanMargin().count") >= 0
            and abs(get("MeanMargin().sum")) <= get("MeanMargin().count") * (1 + 1e-6)
            and 0 <= squares <= p + 1e-6
            and p <= get("Moments().count") + 1e-6
            and p * p <= squares * get("Moments().count") + 1e-6
        )
        if not sound:
            return False
        if len(set(began.values())) == 1:
            agreed = (
                seen == get("MeanMargin().count") == get("Moments().count")
                and (seen == cursor if cursor < WINDOW else seen >= WINDOW)
                and get("TimesRight().values") <= seen
                and 2 * forgotten + right <= seen
                and (learnt < 2**31 - 1) == (get("TimesRight().values") > 0)
                and forgotten + right <= get("TimesRight().values")
                and (forgotten + right > 0) == (get("TimesRight().values") > 0)
                and right == max(was, 0)
                and (seen > 0) == (was >= 0)
                and (turned < 0 or (seen > 1 and get("TimesRight().values") > 0))
                and (seen == 0 or get("GivenLabel().values") >= 0)
                and (loss != loss) == (seen == 0)
            )
            if not agreed:
                return False
    return total <= values["observed"]


def verdict(record, kind, seed):
    """What became of one damaged state: "taken", "refused", or a sentence on what went wrong."""
    rng = random.Random(seed)
    before = record.state_dict()
    state = {name: copy(value) for name, value in sound(rng.randrange(5)).items()}
    damaged = kind(state, rng) if kind is no_dictionary else state
    if damaged is state:
        kind(state, rng)
    try:
        record.load_state_dict(damaged)
    except (TypeError, ValueError) as error:
        words = str(error)
        if len(words) < 20 or "\n" in words or len(words) > 1500:
            return f"is refused unclearly: {words!r}"
        return "refused" if same(before, record.state_dict()) else "is left half loaded"
    except Exception as error:
        return f"ends in {type(error).__name__}: {error}"
    if not is_possible(damaged):
        return "is taken, though no training leaves it behind"
    return "taken" if same(record.state_dict(), damaged) else "is taken otherwise than it was"


def main(count):
    record = Record(N, K, columns=every_column(WINDOW))
    wrong = 0
    for kind in KINDS:
        found = [verdict(record, kind, seed) for seed in range(count)]
        odd = [f"seed {seed}: {word}" for seed, word in enumerate(found) if word not in ("taken", "refused")]
        wrong += len(odd)
        print(
            f"{kind.__name__:22} refused {found.count('refused'):5}  taken {found.count('taken'):5}  wrong {len(odd)}"
        )
        print("".join(f"    {line}\n" for line in odd[:3]), end="")
    print(f"{count * len(KINDS)} damaged states, {wrong} of them ended wrongly")


if __name__ == "__main__":
    main(int(sys.argv[1]))
