/* Conformance: a test for each operator of the table, generated for the backend of this program, and for each
 * fused one that a library brings. Outputs and gradients are compared with the double-precision reference, in
 * sizes on both sides of every tile, vector and thread. */
#pragma once

#include "base/err.h"
#include "trainer/operators/backend.h"
#include "trainer/operators/fusion.h"

/* conformance_run() - prints one TAP line an operator, direction and shape. Return: tests that failed, or
 * a negative errno. */
int conformance_run(const struct backend *b, const struct fusion_table *rules, struct err *err);

/* conformance_judge() - the same tests without a line, for what a library brings before it is used (a
 * second). Return: 0, or -EINVAL with the first that failed. */
int conformance_judge(const struct backend *b, const struct fusion_table *rules, struct err *err);
