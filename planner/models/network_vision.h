/* Network vision: convolutional networks for images of 3 x 224 x 224. Pure; a network without memory has
 * `failed`. */
#pragma once

#include <stdbool.h>

#include "planner/models/network.h"

void network_vision_resnet(struct network *network, const unsigned units[4], bool bottleneck);
void network_vision_vgg16(struct network *network);
void network_vision_densenet121(struct network *network);
