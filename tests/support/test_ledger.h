/* A ledger for a test: there, or the test ends. A test that went on without one would crash in the ledger,
 * which no program does. */
#pragma once

#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler-extender/ledger/ledger_life.h"

static inline struct ledger *test_ledger(void)
{
        struct ledger *ledger = ledger_life_new();

        assert_non_null(ledger);
        return ledger;
}
