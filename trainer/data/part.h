/* Part: raw samples in bytes, as they travel between ranks, and data sets of which a part only is here.
 *
 * A sample's bytes are its pixels and its label, or the words of a text's sample. A data set of which only a
 * part is here has places for so many of them, and knows for each sample's number its place; the numbers
 * stay those of the whole. Training samples only. One thread changes it; another may load samples whose
 * places are not being filled. */
#pragma once

#include "trainer/data/dataset.h"

size_t part_sample_bytes(const struct dataset *d);

/* part_get() - a sample that is here, into part_sample_bytes(). Return: 0, or the error of its file. */
int part_get(const struct dataset *d, uint32_t id, uint8_t *to, struct err *err);

/* part_open() - in place of what it has, `places` empty places. part_number() - there are more samples now,
 * which may come here. Return: 0 or -ENOMEM. */
int part_open(struct dataset *d, size_t places, struct err *err);
int part_number(struct dataset *d, struct err *err);

/* part_put() - a sample into a place; the place is its own from then on, whatever was there. */
void part_put(struct dataset *d, size_t place, uint32_t id, const uint8_t *bytes);

/* part_keep() - these samples stay, in places 0 and on, the others go. Return: 0, -ENOMEM or the error of a
 * file. */
int part_keep(struct dataset *d, const uint32_t *ids, size_t count, struct err *err);
