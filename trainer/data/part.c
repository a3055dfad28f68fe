/* Copies between the arrays of a data set and the bytes that travel. */
#include "trainer/data/part.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

size_t part_sample_bytes(const struct dataset *d)
{
        return d->text ? DATASET_TEXT_SAMPLE * sizeof(uint32_t)
                       : shape_size(&d->size.input) + sizeof(int32_t);
}

size_t part_label_bytes(const struct dataset *d)
{
        return d->text ? 0 : sizeof(int32_t);
}

int part_get_apart(const struct dataset *d, uint32_t id, uint8_t *to, uint8_t *label, struct err *err)
{
        const struct dataset_samples *s = &d->splits[DATASET_TRAIN];
        size_t pixels = shape_size(&d->size.input), place = d->places != NULL ? d->places[id] : id;
        const uint8_t *image;

        if (d->text) {
                memcpy(to, s->tokens + (d->places != NULL ? place * DATASET_TEXT_SAMPLE : place),
                       part_sample_bytes(d));
                return 0;
        }
        image = dataset_pixels(d, DATASET_TRAIN, id, to, err);
        if (image == NULL)
                return err->code;
        if (image != to)
                memcpy(to, image, pixels);
        memcpy(label, &s->labels[place], sizeof(int32_t));
        return 0;
}

int part_get(const struct dataset *d, uint32_t id, uint8_t *to, struct err *err)
{
        return part_get_apart(d, id, to, to + part_sample_bytes(d) - part_label_bytes(d), err);
}

int part_number(struct dataset *d, struct err *err)
{
        size_t count = d->splits[DATASET_TRAIN].count;
        uint32_t *places = reallocarray(d->places, count + 1, sizeof(*places));

        if (places == NULL)
                return err_set(err, -ENOMEM, "no memory for the places of %zu samples", count);
        d->places = places;
        return 0;
}

/* Arrays for so many samples. */
static int allocate(const struct dataset *d, size_t places, struct dataset_samples *ret, struct err *err)
{
        struct dataset_samples s = { .count = d->splits[DATASET_TRAIN].count };
        bool whole;

        if (d->text) {
                s.tokens = calloc(places + 1, DATASET_TEXT_SAMPLE * sizeof(*s.tokens));
                whole = s.tokens != NULL;
        } else {
                s.pixels = calloc(places + 1, shape_size(&d->size.input));
                s.labels = calloc(places + 1, sizeof(*s.labels));
                whole = s.pixels != NULL && s.labels != NULL;
        }
        if (!whole) {
                free(s.pixels);
                free(s.labels);
                free(s.tokens);
                return err_set(err, -ENOMEM, "no memory for %zu samples of %zu bytes", places,
                               part_sample_bytes(d));
        }
        *ret = s;
        return 0;
}

/* Where a sample lies, but for its label. */
static uint8_t *values_at(const struct dataset *d, const struct dataset_samples *s, size_t place)
{
        assert(d->text ? s->tokens != NULL : s->pixels != NULL && s->labels != NULL);
        return d->text ? (uint8_t *) (s->tokens + place * DATASET_TEXT_SAMPLE)
                       : s->pixels + place * shape_size(&d->size.input);
}

static void put(const struct dataset *d, struct dataset_samples *s, size_t place, const uint8_t *bytes)
{
        size_t values = part_sample_bytes(d) - part_label_bytes(d);

        memcpy(values_at(d, s, place), bytes, values);
        if (!d->text)
                memcpy(&s->labels[place], bytes + values, sizeof(int32_t));
}

static void replace(struct dataset *d, const struct dataset_samples *s)
{
        struct dataset_samples *old = &d->splits[DATASET_TRAIN];

        free(old->pixels);
        free(old->labels);
        free(old->tokens);
        *old = *s;
}

int part_open(struct dataset *d, size_t places, struct err *err)
{
        struct dataset_samples s = { 0 };

        if (part_number(d, err) < 0 || allocate(d, places, &s, err) < 0)
                return err->code;
        replace(d, &s);
        return 0;
}

uint8_t *part_values(const struct dataset *d, size_t place)
{
        return values_at(d, &d->splits[DATASET_TRAIN], place);
}

void part_name(struct dataset *d, size_t place, uint32_t id, const uint8_t *label)
{
        if (!d->text)
                memcpy(&d->splits[DATASET_TRAIN].labels[place], label, sizeof(int32_t));
        /* the end of an epoch and the beginning of the next may have a sample twice, both with the same
         * bytes: whoever loads the one while the other gets its place may use either. The bytes come first
         * (place_in() in trainer/data/dataset.c is the other half). */
        __atomic_store_n(&d->places[id], (uint32_t) place, __ATOMIC_RELEASE);
}

void part_put(struct dataset *d, size_t place, uint32_t id, const uint8_t *bytes)
{
        size_t values = part_sample_bytes(d) - part_label_bytes(d);

        memcpy(part_values(d, place), bytes, values);
        part_name(d, place, id, bytes + values);
}

int part_keep(struct dataset *d, const uint32_t *ids, size_t count, struct err *err)
{
        CLEANUP(free_p) uint8_t *bytes = malloc(part_sample_bytes(d));
        struct dataset_samples s = { 0 };
        int r = bytes != NULL ? allocate(d, count, &s, err) : err_set(err, -ENOMEM, "no memory for a sample");

        for (size_t i = 0; r == 0 && bytes != NULL && i < count; i++) {
                r = part_get(d, ids[i], bytes, err);
                if (r == 0)
                        put(d, &s, i, bytes);
        }
        if (r == 0)
                r = part_number(d, err);
        if (r < 0) {
                free(s.pixels);
                free(s.labels);
                free(s.tokens);
                return r;
        }
        for (size_t i = 0; i < count; i++)
                d->places[ids[i]] = (uint32_t) i;
        replace(d, &s);
        return 0;
}
