"""The models that timm and transformers have, beside the first ones."""

from published.facts import ADAM, SGD_OF_TIMM, Published, image_classifier
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


def longformer(tokens: int = 4096, side: int = 256, vocabulary: int = 50265) -> int:
    """Queries meet keys in overlapping chunks of two sides, and weights meet values in chunks of a side by three; a
    product of the same form, of one feature, makes the mask."""
    projections = tokens * 4 * WIDTH**2
    scores = (tokens // side - 1) * (2 * side) ** 2 * (WIDTH + 1)
    context = (tokens // side) * side * 3 * side * WIDTH
    feed_forward = tokens * 2 * WIDTH * 4 * WIDTH
    return 12 * (projections + scores + context + feed_forward) + tokens * (WIDTH**2 + WIDTH * vocabulary)


def bigbird(tokens: int = 4096, block: int = 64, random: int = 3, vocabulary: int = 50358) -> int:
    """The first and the last block attend to all blocks, their neighbours to four beside the random ones, the others to
    five."""
    pairs = 2 * (tokens // block) + 2 * (4 + random) + (tokens // block - 4) * (5 + random)
    layer = tokens * (4 * WIDTH**2 + 2 * WIDTH * 4 * WIDTH) + 2 * pairs * block**2 * WIDTH
    return 12 * layer + WIDTH**2 + tokens * (WIDTH**2 + WIDTH * vocabulary)


def reformer(tokens: int = 4096, chunk: int = 64, width: int = 256, inner: int = 512) -> int:
    attention, buckets, vocabulary = 12 * 64, 128, 320
    local = 4 * width * attention + 2 * 2 * chunk * attention
    hashed = 3 * width * attention + attention * buckets // 2 + 2 * 2 * chunk * attention
    return tokens * (3 * (local + hashed) + 6 * 2 * width * inner + 2 * width * vocabulary)


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
    "hf_DistilBert": Published(66_985_530, (8, 512), (1, 512), ADAM, distilbert()),
    "hf_Bart": Published(139_420_416, (4, 512), (1, 512), ADAM, bart()),
    "hf_Longformer": Published(148_711_257, (2, 1024), (1, 4096), ADAM, longformer()),
    "hf_BigBird": Published(128_111_286, (2, 1024), (1, 4096), ADAM, bigbird()),
    "hf_Reformer": Published(5_975_872, (8, 4096), (1, 4096), ADAM, reformer()),
}
