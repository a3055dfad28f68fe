/* Reconcile: one job looked at as a whole, and the next thing done that is missing. Every step may be
 * repeated. */
#pragma once

#include "job/controller/record.h"

void reconcile(struct record *record);
