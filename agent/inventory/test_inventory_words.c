/* What the object of an inventory says beside the inventory: rows of objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/inventory/inventory_words.h"
#include "base/cleanup.h"

#define OWNED(LIST)      "{\"metadata\":{\"ownerReferences\":" LIST "}}"
#define CONDITIONS(LIST) "{\"status\":{\"conditions\":" LIST "}}"

/* clang-format off */
static const struct { const char *what, *object, *owner; bool leaves; } rows[] = {
        { "nothing",                    "{}", "", false },
        { "of a Node",                  OWNED("[{\"kind\":\"Pod\",\"uid\":\"p\"},{\"kind\":\"Node\",\"uid\":\"n\"}]"), "n", false },
        { "of a Node without a uid",    OWNED("[{\"kind\":\"Node\",\"uid\":7}]"), "", false },
        { "of what is no list",         OWNED("7"), "", false },
        { "an agent that is there",     CONDITIONS("[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"ChipsUsable\"}]"), "", false },
        { "one that ends",              CONDITIONS("[{\"type\":\"Degraded\"},{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"AgentLeaves\"}]"), "", true },
        { "that word for another type", CONDITIONS("[{\"type\":\"Degraded\",\"reason\":\"AgentLeaves\"}]"), "", false },
        { "conditions that are none",   CONDITIONS("[7,{\"type\":7}]"), "", false },
};
/* clang-format on */

static void each_object_says_what_it_says(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                json_t *object = json_loads(rows[i].object, 0, NULL);

                assert_non_null(object);
                if (strcmp(inventory_words_owner(object), rows[i].owner) != 0 ||
                    inventory_words_leaves(object) != rows[i].leaves)
                        fail_msg("%s: '%s', %d", rows[i].what, inventory_words_owner(object),
                                 inventory_words_leaves(object));
                json_decref(object);
        }
        assert_false(inventory_words_leaves(NULL));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(each_object_says_what_it_says) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
