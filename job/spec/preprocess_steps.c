/* The steps of spec.data.preprocess, read from their text. */
#include "job/spec/preprocess_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static int parse_size(const char *value, struct preprocess_steps *p)
{
        char first[16];
        const char *x = value != NULL ? strchr(value, 'x') : NULL;
        uint64_t height, width;

        if (x == NULL || (size_t) (x - value) >= sizeof(first))
                return -EINVAL;
        memcpy(first, value, (size_t) (x - value));
        first[x - value] = '\0';
        if (text_parse_uint64(first, &height) < 0 || text_parse_uint64(x + 1, &width) < 0 || height == 0 ||
            width == 0 || height > PREPROCESS_STEPS_EDGE_MAX || width > PREPROCESS_STEPS_EDGE_MAX)
                return -EINVAL;
        p->height = (size_t) height;
        p->width = (size_t) width;
        return 0;
}

static int parse_flip(const char *value, struct preprocess_steps *p)
{
        p->flip = 0.5;
        return value == NULL || (text_parse_double(value, &p->flip) == 0 && p->flip >= 0 && p->flip <= 1)
                       ? 0
                       : -EINVAL;
}

static int parse_crop(const char *value, struct preprocess_steps *p)
{
        uint64_t pixels = 2;

        if (value != NULL && (text_parse_uint64(value, &pixels) < 0 || pixels > 1024))
                return -EINVAL;
        p->crop = (size_t) pixels;
        return 0;
}

static int parse_tokenise(const char *value, struct preprocess_steps *p)
{
        p->of_text = true;
        p->bytes = value != NULL && strcmp(value, "byte") == 0;
        p->pieces = value != NULL && strcmp(value, "wordpiece") == 0;
        return p->bytes || p->pieces || (value != NULL && strcmp(value, "word") == 0) ? 0 : -EINVAL;
}

/* @value: after the step's colon, or NULL */
static int parse_step(const char *step, const char *value, struct preprocess_steps *p)
{
        if (strcmp(step, "tokenise") == 0)
                return parse_tokenise(value, p);
        p->of_images = true;
        if (strcmp(step, "resize") == 0)
                return parse_size(value, p);
        if (strcmp(step, "flip") == 0)
                return parse_flip(value, p);
        if (strcmp(step, "crop") == 0)
                return parse_crop(value, p);
        p->scale = strcmp(step, "scale") == 0;
        return value == NULL && (p->scale || strcmp(step, "normalise") == 0) ? 0 : -EINVAL;
}

int preprocess_steps_parse(const char *spec, struct preprocess_steps *ret, struct err *err)
{
        CLEANUP(free_p) char *copy = strdup(spec != NULL ? spec : "");
        struct preprocess_steps p = { 0 };
        char *rest = copy, *step;

        if (copy == NULL)
                return err_set(err, -ENOMEM, "no memory");
        while (spec != NULL && spec[0] != '\0' && (step = strsep(&rest, ",")) != NULL) {
                char *value = strchr(step, ':');

                if (value != NULL)
                        *value++ = '\0';
                if (parse_step(step, value, &p) < 0)
                        return err_set(
                                err, -EINVAL,
                                "step '%.40s%s%.40s': resize:HxW, normalise, scale, flip[:P], "
                                "crop[:N] or tokenise:word|byte|wordpiece is wanted, with commas between",
                                step, value != NULL ? ":" : "", value != NULL ? value : "");
        }
        *ret = p;
        return 0;
}

int preprocess_steps_fit(const struct preprocess_steps *p, bool text, struct err *err)
{
        if (text && p->of_images)
                return err_set(
                        err, -EINVAL,
                        "text has no pixels: only tokenise:word|byte|wordpiece is for a model of text");
        if (!text && p->of_text)
                return err_set(err, -EINVAL, "step 'tokenise' is for text, this model is of images");
        return 0;
}
