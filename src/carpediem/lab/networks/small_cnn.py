"""A convolutional network that trains in seconds on a CPU."""

from torch import Tensor, nn

from carpediem.lab.networks.initialise import initialise_convolutions


class SmallCNN(nn.Module):
    """Two blocks of 3×3 convolution, BN and ReLU, halved between; then global pooling, dropout, linear.

    About twenty thousand parameters. Made for the 8×8 `digits`, and good enough for a first look at
    28×28 or 32×32 images.

    Args:
        num_classes: outputs of the last linear layer.
        in_channels: channels of the images, whose sides are at least 2.
        dropout: probability in [0, 1) of dropping a pooled feature.

    >>> import torch
    >>> SmallCNN(num_classes=10, in_channels=1, dropout=0.2)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    def __init__(self, *, num_classes: int, in_channels: int, dropout: float) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
        )
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(64, num_classes)
        initialise_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, shape (b, num_classes), of images of shape (b, in_channels, h, w)."""
        pooled = self.features(images).mean(dim=(2, 3))
        logits: Tensor = self.classifier(self.dropout(pooled))
        return logits
