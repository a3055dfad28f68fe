/* Part: raw samples in bytes, as they travel between ranks, and data sets of which a part only is here.
 *
 * A sample's bytes are its pixels and its label, or the words of a text's sample. A data set of which only a
 * part is here has places for so many of them, and knows for each sample's number its place; the numbers
 * stay those of the whole. Training samples only. One thread changes it; another may load samples whose
 * places are not being filled. */
#pragma once

#include "trainer/data/dataset.h"

size_t part_sample_bytes(const struct dataset *d);

/* part_label_bytes() - of these the last: a label's; text has none, its words are all. */
size_t part_label_bytes(const struct dataset *d);

/* part_get() - a sample that is here, into part_sample_bytes(). part_get_apart() - its label elsewhere.
 * Return: 0, or the error of its file. */
int part_get(const struct dataset *d, uint32_t id, uint8_t *to, struct err *err);
int part_get_apart(const struct dataset *d, uint32_t id, uint8_t *to, uint8_t *label, struct err *err);

/* part_open() - in place of what it has, `places` empty places. part_number() - there are more samples now,
 * which may come here. Return: 0 or -ENOMEM. */
int part_open(struct dataset *d, size_t places, struct err *err);
int part_number(struct dataset *d, struct err *err);

/* part_put() - a sample into a place; the place is its own from then on, whatever was there. */
void part_put(struct dataset *d, size_t place, uint32_t id, const uint8_t *bytes);

/* part_values() - where samples come to lie, from that place on one behind the other, without their labels.
 * part_name() - who lies there is known from now on, with its label. */
uint8_t *part_values(const struct dataset *d, size_t place);
void part_name(struct dataset *d, size_t place, uint32_t id, const uint8_t *label);

/* part_keep() - these samples stay, in places 0 and on, the others go. Return: 0, -ENOMEM or the error of a
 * file. */
int part_keep(struct dataset *d, const uint32_t *ids, size_t count, struct err *err);
