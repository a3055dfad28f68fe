/* Conformance: a test for each operator of the table, generated for the backend of this program. Outputs and
 * gradients are compared with the double-precision reference, in sizes on both sides of every tile, vector
 * and thread. */
#pragma once

#include "base/err.h"
#include "trainer/operators/backend.h"

/* conformance_run() - prints one TAP line an operator, direction and shape. Return: tests that failed, or
 * -ENOMEM. */
int conformance_run(const struct backend *b, struct err *err);
