"""The models that find objects in images."""

from published.facts import Published

# published is the cost at 608 x 608, an addition and a multiplication counted as two
YOLO_SPP_AT_608 = 141.45e9

PUBLISHED = {
    "yolov3": Published(
        62_998_749,
        (8, 3, 416, 416),
        (1, 3, 384, 512),
        # V1's learning rate rises to 0.01 over 500 iterations; ours is that of the fiftieth
        {"lr": 0.001, "momentum": 0.937, "nesterov": True, "weight_decay": 5e-4},
        YOLO_SPP_AT_608 / 2 * (384 * 512) / 608**2,
    ),
}
