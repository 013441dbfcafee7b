"""The image classifiers of torchvision, beside those that were built first, and the two that are trained for int8."""

from published.facts import ADAM, image_classifier

PUBLISHED = {
    "alexnet": image_classifier(61_100_840, 0.7142e9, train_batch=32, optimizer=ADAM),
    "densenet121": image_classifier(7_978_856, 2.834e9, train_batch=32, optimizer=ADAM),
    "mnasnet1_0": image_classifier(4_383_312, 0.314e9, train_batch=32, optimizer=ADAM),
    "mobilenet_v3_large": image_classifier(5_483_032, 0.217e9, train_batch=32, optimizer=ADAM),
    "resnext50_32x4d": image_classifier(25_028_904, 4.230e9, train_batch=32, optimizer=ADAM),
    "shufflenet_v2_x1_0": image_classifier(2_278_604, 0.145e9, train_batch=32, optimizer=ADAM),
    "squeezenet1_1": image_classifier(1_235_496, 0.349e9, train_batch=32, optimizer=ADAM),
    "vgg16": image_classifier(138_357_544, 15.470e9, train_batch=32, optimizer=ADAM),
    "resnet50_quantized_qat": image_classifier(25_557_032, 4.089e9, train_batch=32, optimizer=ADAM),
    "mobilenet_v2_quantized_qat": image_classifier(3_504_872, 0.3008e9, train_batch=32, optimizer=ADAM),
}
