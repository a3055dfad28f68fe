/* Tuned backend: the linked one, opened with what is known to be good for this device: the shipped preset, or
 * what was tuned on this machine. */
#pragma once

#include "base/err.h"
#include "trainer/operators/backend.h"
#include "trainer/preset.h"
#include "trainer/train_options.h"

/* tuned_backend_open() - --no-preset: with neither.
 * @b: of the command line; its setting becomes the one in use. Return: 0 or a negative errno */
int tuned_backend_open(const struct train_options *o, struct backend_options *b, struct backend *ret,
                       struct preset *ret_preset, struct err *err);
