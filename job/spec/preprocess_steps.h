/* Preprocess steps: what is done to samples before they are trained on, as a specification says it:
 * "resize:28x28,normalise,flip:0.5,crop:2" or "tokenise:byte". What each step is, is said where it is done
 * (trainer/data/preprocess.h); here is its form alone, which jobs and the trainer judge alike. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PREPROCESS_STEPS_EDGE_MAX 65536

struct preprocess_steps {
        size_t height, width; /* resize; 0 = as they are */
        bool scale;
        double flip;             /* probability */
        size_t crop;             /* pixels */
        bool bytes, pieces;      /* tokenise:byte, tokenise:wordpiece */
        bool of_images, of_text; /* steps for such data were named */
};

/* preprocess_steps_parse() - @spec: NULL or "" = the defaults. Return: 0, or -EINVAL naming the step. */
int preprocess_steps_parse(const char *spec, struct preprocess_steps *ret, struct err *err);

/* preprocess_steps_fit() - are these steps for such data? @text: of a text model. Return: 0, or -EINVAL. */
int preprocess_steps_fit(const struct preprocess_steps *p, bool text, struct err *err);
