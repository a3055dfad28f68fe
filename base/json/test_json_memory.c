/* Documents that come and go with kept memory, and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_memory.h"

/* A document with strings of all lengths up to some, and what it looks like again. */
static json_t *make(unsigned longest, unsigned seed)
{
        json_t *object = json_object();

        for (unsigned i = 0; i <= longest && object != NULL; i++) {
                char key[512], value[512];

                (void) snprintf(key, sizeof(key), "%u", i);
                memset(value, 'a' + (int) ((i + seed) % 26), i);
                value[i] = '\0';
                (void) json_object_set_new(object, key, json_string(value));
        }
        return object;
}

static bool is_what_was_made(const json_t *object, unsigned longest, unsigned seed)
{
        for (unsigned i = 0; i <= longest; i++) {
                char key[512];
                const char *value;

                (void) snprintf(key, sizeof(key), "%u", i);
                value = json_string_value(json_object_get(object, key));
                if (value == NULL || strlen(value) != i)
                        return false;
                for (unsigned k = 0; k < i; k++)
                        if (value[k] != 'a' + (int) ((i + seed) % 26))
                                return false;
        }
        return true;
}

/* Two are there at a time, so that a block given twice, or too short a one, would show in the other. */
static void documents_keep_their_contents(void **state)
{
        json_t *before = NULL;

        (void) state;
        json_memory_keep();
        for (unsigned turn = 0; turn < 20; turn++) {
                unsigned longest = 40 + turn * 20;
                json_t *object = make(longest, turn);

                assert_true(object == NULL || json_object_size(object) <= longest + 1);
                if (before != NULL)
                        assert_true(is_what_was_made(before, longest - 20, turn - 1));
                json_decref(before);
                before = object;
                if (object != NULL)
                        assert_true(is_what_was_made(object, longest, turn));
        }
        json_decref(before);
        json_memory_release();
}

/* free() takes what jansson has allocated, and jansson what malloc() has. */
static void blocks_are_mallocs_own(void **state)
{
        CLEANUP(free_p) char *text = NULL;
        json_t *before, *object;

        (void) state;
        before = make(30, 1);
        json_memory_keep();
        json_decref(before);
        object = make(30, 2);
        text = json_dumps(object, 0);
        json_decref(object);
        if (text != NULL)
                assert_int_equal(text[0], '{');
        object = make(30, 3);
        json_memory_release();
        json_decref(object);
}

static void what_waits_has_an_end(void **state)
{
        json_t *many = json_array();
        size_t before, after;

        (void) state;
        json_memory_keep();
        for (unsigned i = 0; i < JSON_MEMORY_BYTES; i++)
                (void) json_array_append_new(many, json_integer(i));
        before = mallinfo2().uordblks;
        json_decref(many);
        after = mallinfo2().uordblks;
        json_memory_release();
        if (before > 0) /* ASan's malloc does not say */
                assert_true(before - after > 8 * JSON_MEMORY_BYTES);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(documents_keep_their_contents),
                cmocka_unit_test(blocks_are_mallocs_own),
                cmocka_unit_test(what_waits_has_an_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
