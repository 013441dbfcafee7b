"""The models that were built first."""

from published.facts import ADAM, SGD_OF_TIMM, Published, image_classifier


def transformer_layer(width: int, inner: int, tokens: int, attentions: int = 1) -> int:
    """Multiplications for one token in a layer: for each attention four projections and two products with all tokens,
    and the two matrices of the feed-forward network."""
    return attentions * (4 * width**2 + 2 * tokens * width) + 2 * width * inner


def bert(tokens: int = 512, width: int = 768, vocabulary: int = 30522) -> int:
    return tokens * (12 * transformer_layer(width, 4 * width, tokens) + width**2 + width * vocabulary)


def gpt2(tokens: int = 1024, width: int = 768, vocabulary: int = 50257) -> int:
    return tokens * (12 * transformer_layer(width, 4 * width, tokens) + width * vocabulary)


def t5_small(tokens: int = 2048, width: int = 512, inner: int = 2048, vocabulary: int = 32128) -> int:
    encoder = 6 * transformer_layer(width, inner, tokens)
    decoder = 6 * transformer_layer(width, inner, tokens, attentions=2)
    return tokens * (encoder + decoder + width * vocabulary)


PUBLISHED = {
    "resnet18": image_classifier(11_689_512, 1.814e9, train_batch=32, optimizer=ADAM),
    "resnet50": image_classifier(25_557_032, 4.089e9, train_batch=32, optimizer=ADAM),
    "mobilenet_v2": image_classifier(3_504_872, 0.3008e9, train_batch=32, optimizer=ADAM),
    "timm_vision_transformer": image_classifier(22_050_664, 4.6e9, train_batch=64, optimizer=SGD_OF_TIMM),
    # the 360 million that are published of MixNet-M are more than those of its convolutions
    "timm_efficientnet": image_classifier(5_014_382, None, train_batch=64, optimizer=SGD_OF_TIMM),
    "hf_Bert": Published(109_514_298, (4, 512), (1, 512), ADAM, bert()),
    "hf_GPT2": Published(124_439_808, (4, 512), (1, 1024), ADAM, gpt2()),
    "hf_T5": Published(60_506_624, (2, 1024), (1, 2048), ADAM, t5_small()),
    "dlrm": Published(
        (4 + 3 + 2) * 2 + (5 * 3 + 4 * 2) + (9 * 4 + 5 * 2 + 3 * 1), (2, 4), (2, 4), {"lr": 0.01, "momentum": 0}
    ),
    "soft_actor_critic": Published(
        4 * 1024 + 1025 * 1024 + 1025 * 2,
        (512, 3),
        (1, 3),
        {"lr": 1e-4, "betas": (0.9, 0.999)},
    ),
}
