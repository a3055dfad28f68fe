/* Feature file: what node-feature-discovery makes labels of ("remuda.dev/nvidia.count=8"), written by rename
 * when it changes, into the file that the configuration names. */
#pragma once

#include "agent/inventory/inventory.h"
#include "base/err.h"
#include "base/text.h"

/* feature_file_write() - Return: 0, or a negative errno and a sentence. */
int feature_file_write(const char *path, const struct inventory *inventory, struct err *err);
