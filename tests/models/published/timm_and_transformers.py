"""The models that timm and transformers have, beside the first ones."""

from published.facts import SGD_OF_TIMM, Published, image_classifier

NFNET_IMAGE = 192  # its publication counts at 256 pixels

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
}
