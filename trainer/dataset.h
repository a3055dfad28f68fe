/* Dataset: labelled samples in memory, turned into floats batch by batch.
 *
 * Two splits: train and test. After dataset_open() it is read-only and may be used by several threads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "trainer/model.h"

enum dataset_split { DATASET_TRAIN, DATASET_TEST, DATASET_SPLITS };

struct dataset; /* opaque */

/* dataset_open() - read DIR: the four IDX files of MNIST and its kin, `.gz` included.
 * Return: 0, -ENOENT, -EINVAL (with the file's name), -ENOMEM. */
int dataset_open(const char *directory, struct dataset **ret, struct err *err);
void dataset_free(struct dataset *d);
void dataset_free_p(struct dataset **d);

size_t dataset_count(const struct dataset *d, enum dataset_split split);
struct model_size dataset_size(const struct dataset *d);

/* dataset_load() - the samples `ids` as floats and labels, in that order. */
void dataset_load(const struct dataset *d, enum dataset_split split, const uint32_t *ids, size_t count,
                  float *x, int32_t *labels);
