/* Budget reads: the budgets of a namespace and some of its pods, read once for budgets_judge(). */
#pragma once

#include "store/budgets.h"

void budget_reads_judge(struct store *store, const char *namespace_, const char *const *names, size_t count,
                        budgets_refuse refuse, store_answer answer, void *userdata);
