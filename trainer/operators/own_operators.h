/* Own operators: what the command line brings to a backend from shared libraries: a kernel in the place of
 * the backend's (--operator), an activation (--activation), rules of fusion with operators that do them
 * (--fusion).
 */
#pragma once

#include "base/err.h"
#include "trainer/operators/backend.h"
#include "trainer/operators/fusion.h"
#include "trainer/train_options.h"

/* own_operators_load() - @ret: the rules of fusion: the trainer's own but those that would go around a kernel
 * of a library, and the file's. Return: 0, or a negative errno with the option and what is wrong. */
int own_operators_load(const struct train_options *o, struct backend *b, struct fusion_table *ret,
                       struct err *err);

/* own_operators_judge() - by double precision, before they are used; nothing without any. Return: 0, or
 * -EINVAL: one of them is wrong. */
int own_operators_judge(const struct train_options *o, const struct backend *b,
                        const struct fusion_table *rules, struct err *err);
