"""Stop in the middle of an epoch, start again, and train on exactly the batches that would have come."""

import io

import torch

from carpediem import AdaptiveSampler, RecencyBias


def build() -> tuple[RecencyBias, AdaptiveSampler]:
    selector = RecencyBias(num_samples=1000, num_classes=10, epochs=20)
    return selector, AdaptiveSampler(selector, batch_size=50, seed=7)


def main() -> None:
    selector, sampler = build()
    stream = iter(sampler)
    trained_on = [next(stream) for _ in range(300)]
    selector.observe(torch.tensor(trained_on), torch.randn(300, 10), torch.zeros(300, dtype=torch.long))

    checkpoint = io.BytesIO()  # a file, as a rule
    torch.save({"selector": selector.state_dict(), "sampler": sampler.state_dict()}, checkpoint)
    expected = list(stream)

    checkpoint.seek(0)
    state = torch.load(checkpoint, weights_only=True)
    selector, sampler = build()
    selector.load_state_dict(state["selector"])
    sampler.load_state_dict(state["sampler"])
    assert list(sampler) == expected
    print(f"resumed at index 300 of epoch 0: the same {len(expected)} indices followed")


if __name__ == "__main__":
    main()
