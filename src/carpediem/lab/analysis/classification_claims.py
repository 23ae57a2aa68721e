"""The claims of Sections 1, 4.1 and 4.2 and of the appendix: what the four methods draw, and how they fare."""

from __future__ import annotations

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.claims import Claim
from carpediem.lab.analysis.comparisons import Above, Below, LargerGain
from carpediem.lab.analysis.measures import DRAWN_LOSS, EARLY, LATE, SETTLED_SHARE, TRAINING_LOSS, Arm
from carpediem.lab.analysis.versus import (
    DRAWN,
    ERROR,
    FIGURE_4,
    LOSS,
    TABLE_2_LEFT,
    TABLE_4,
    TABLES_2_AND_3,
    above,
    below,
    between,
)

SECTION_1 = (
    Claim(
        "1",
        "Training on what Active Bias takes for uncertain is slow, but ends at a lower test error.",
        f"{LOSS}: above Random Batch's; {ERROR}: below it",
        (
            *above(TABLES_2_AND_3, "active", "random", measure=TRAINING_LOSS),
            *below(TABLES_2_AND_3, "active", "random"),
        ),
    ),
    Claim(
        "1, 4.1",
        "A growing window calls many easy samples uncertain late in training.",
        "settled share of Active Bias: above one half at 70%, and higher than at 30%",
        (
            *(Above(Arm(*setting, "active"), SETTLED_SHARE[LATE], 0.5) for setting in FIGURE_4),
            *(
                Below(Arm(*s, "active"), Arm(*s, "active"), SETTLED_SHARE[EARLY], SETTLED_SHARE[LATE])
                for s in FIGURE_4
            ),
        ),
    ),
    Claim(
        "1",
        "A sliding window finds samples that are uncertain indeed, all through training.",
        f"{DRAWN}: Recency Bias's above Random Batch's",
        tuple(
            one
            for share in (EARLY, LATE)
            for one in below(FIGURE_4, "random", "recency", measure=DRAWN_LOSS[share])
        ),
    ),
    Claim(
        "1",
        "Recency Bias both trains faster than Random Batch and ends at a lower error.",
        f"{LOSS} and {ERROR}: below Random Batch's",
        (
            *below((*TABLES_2_AND_3, *TABLE_4), "recency", "random", measure=TRAINING_LOSS),
            *below((*TABLES_2_AND_3, *TABLE_4), "recency", "random"),
        ),
    ),
    Claim(
        "1",
        "Recency Bias is ahead of the other three in both tasks and on every data set.",
        f"{ERROR}: the lowest of the four",
        below((*TABLES_2_AND_3, *TABLE_4), "recency", *paper.RIVALS),
    ),
)
SECTION_4_1 = (
    Claim(
        "4.1",
        "Of the four methods Online Batch draws the hardest samples.",
        f"{DRAWN}: the highest",
        tuple(
            one
            for share in (EARLY, LATE)
            for one in above(FIGURE_4, "online", "random", "active", "recency", measure=DRAWN_LOSS[share])
        ),
    ),
    Claim(
        "4.1",
        "Early on Active Bias draws moderately hard samples.",
        "loss drawn at 30%: between Random Batch's and Online Batch's",
        between("active", [EARLY]),
    ),
    Claim(
        "4.1",
        "Later Active Bias draws more easy samples, and no longer moderately hard ones.",
        "loss drawn at 70%: below Random Batch's",
        below(FIGURE_4, "active", "random", measure=DRAWN_LOSS[LATE]),
    ),
    Claim(
        "4.1",
        "The easy samples that Active Bias draws late make its training slow.",
        f"{LOSS}: above Random Batch's",
        above(FIGURE_4, "active", "random", measure=TRAINING_LOSS),
    ),
    Claim(
        "4.1",
        "Recency Bias draws moderately hard samples early and late: the order is Random, Recency, Online.",
        f"{DRAWN}: between Random Batch's and Online Batch's",
        between("recency", [EARLY, LATE]),
    ),
)
SECTION_4_2 = (
    Claim(
        "4.2.2",
        "With DenseNet and momentum Recency Bias has the lowest test error on all three data sets.",
        f"{ERROR}: the lowest of the four",
        below(TABLE_2_LEFT, "recency", *paper.RIVALS),
    ),
    Claim(
        "4.2.2",
        "Its training loss falls faster than Random Batch's.",
        f"{LOSS}: below it",
        below(TABLE_2_LEFT, "recency", "random", measure=TRAINING_LOSS),
    ),
    Claim(
        "4.2.2",
        "Online Batch's training loss falls the fastest, and yet its test error is not the lowest.",
        f"{LOSS}: the lowest of the four; {ERROR}: above Recency Bias's",
        (
            *below(TABLE_2_LEFT, "online", "random", "active", "recency", measure=TRAINING_LOSS),
            *below(TABLE_2_LEFT, "recency", "online"),
        ),
    ),
    Claim(
        "4.2.2",
        "Online Batch beats Random Batch on CIFAR-10, and falls behind it on CIFAR-100, which is harder.",
        ERROR,
        (*below(TABLE_2_LEFT[1:2], "online", "random"), *below(TABLE_2_LEFT[2:], "random", "online")),
    ),
    Claim(
        "4.2.2",
        "Active Bias tends to generalise better than Random Batch.",
        f"{ERROR}: below it",
        below(TABLE_2_LEFT, "active", "random"),
        is_general=True,
    ),
    Claim(
        "4.2.2",
        "On CIFAR-10 Active Bias has the highest training loss and a lower test error than Random Batch.",
        f"{LOSS}: the highest of the four; {ERROR}: below Random Batch's",
        (
            *above(TABLE_2_LEFT[1:2], "active", "random", "online", "recency", measure=TRAINING_LOSS),
            *below(TABLE_2_LEFT[1:2], "active", "random"),
        ),
    ),
    Claim(
        "4.2.2",
        "Active Bias slows training down.",
        f"{LOSS}: above Random Batch's",
        above(TABLE_2_LEFT, "active", "random", measure=TRAINING_LOSS),
    ),
    Claim(
        "4.2.2",
        "Of the two that go by uncertainty only Recency Bias trains faster and generalises better.",
        f"{LOSS}: Recency Bias's below Random Batch's, Active Bias's above; {ERROR}: Recency Bias's below",
        (
            *below(TABLE_2_LEFT, "recency", "random", measure=TRAINING_LOSS),
            *above(TABLE_2_LEFT, "active", "random", measure=TRAINING_LOSS),
            *below(TABLE_2_LEFT, "recency", "random"),
        ),
    ),
    Claim(
        "4.2.2",
        "With either network and optimizer Recency Bias has the lowest test error, but for MNIST with SGD.",
        f"{ERROR}: the lowest of the four",
        below([s for s in TABLES_2_AND_3 if s[1:] != ("mnist", "sgd")], "recency", *paper.RIVALS),
    ),
    Claim(
        "4.2.2",
        "Recency Bias gains more with SGD than with momentum.",
        "best test error: by how many percent of the rival's it is lower, but for MNIST",
        tuple(
            LargerGain(net, data, rival)
            for net in ("densenet-40-12", "resnet-50")
            for data in paper.ABLATED
            for rival in paper.RIVALS
        ),
    ),
)
APPENDIX = (
    Claim(
        "Appendix",
        "With SGD or ResNet, too, Recency Bias is ahead of the other three, as a rule.",
        f"{ERROR}: the lowest of the four",
        below([s for s in TABLES_2_AND_3 if s not in TABLE_2_LEFT], "recency", *paper.RIVALS),
        is_general=True,
    ),
)
