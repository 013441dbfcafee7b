"""The models that timm and transformers have, beside the first ones."""

from published.facts import ADAM, DROPOUT, SGD_OF_TIMM, Published, image_classifier
from published.first_models import transformer_layer

NFNET_IMAGE = 192  # its publication counts at 256 pixels

WIDTH = 768  # of all the base models


def albert(tokens: int = 512, embedding: int = 128, vocabulary: int = 30000) -> int:
    head = WIDTH * embedding + embedding * vocabulary
    return tokens * (embedding * WIDTH + 12 * transformer_layer(WIDTH, 4 * WIDTH, tokens) + head)


def distilbert(tokens: int = 512, vocabulary: int = 30522) -> int:
    return tokens * (6 * transformer_layer(WIDTH, 4 * WIDTH, tokens) + WIDTH**2 + WIDTH * vocabulary)


def bart(tokens: int = 512, vocabulary: int = 50265) -> int:
    encoder = 6 * transformer_layer(WIDTH, 4 * WIDTH, tokens)
    decoder = 6 * transformer_layer(WIDTH, 4 * WIDTH, tokens, attentions=2)
    return tokens * (encoder + decoder + WIDTH * vocabulary)


PUBLISHED = {
    "timm_nfnet": Published(
        71_489_284,
        (64, 3, NFNET_IMAGE, NFNET_IMAGE),
        (1, 3, NFNET_IMAGE, NFNET_IMAGE),
        SGD_OF_TIMM,
        12.38e9 * (NFNET_IMAGE / 256) ** 2,
    ),
    # published with fewer digits, or with the additions and poolings counted
    "timm_regnet": image_classifier(3_162_996, None, train_batch=64, optimizer=SGD_OF_TIMM),
    "timm_resnest": image_classifier(10_611_688, None, train_batch=64, optimizer=SGD_OF_TIMM),
    "timm_vovnet": image_classifier(22_600_296, None, train_batch=64, optimizer=SGD_OF_TIMM),
    "hf_Albert": Published(11_221_680, (8, 512), (1, 512), ADAM, albert()),
    "hf_DistilBert": Published(66_985_530, (8, 512), (1, 512), ADAM, distilbert(), DROPOUT),
    "hf_Bart": Published(139_420_416, (4, 512), (1, 512), ADAM, bart(), DROPOUT | {"rand"}),
}
