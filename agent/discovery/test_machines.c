/* Every machine of tests/data/machines gives the inventory beside it. After a change that is meant,
 * REMUDA_WRITE_GOLDEN=1 build/tests/test_machines writes them anew, to be looked at in the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/inventory_json.h"
#include "agent/tree/tree_machine.h"
#include "base/cleanup.h"
#include "base/text.h"

#define FOLDER "tests/data/machines"

static json_t *look(const char *path)
{
        struct inventory inventory, again;
        struct tree *tree = NULL;
        struct err err = { 0 };
        json_t *object;

        if (tree_machine_open(path, &tree, &err) < 0 || discovery_run(tree, NULL, &inventory, &err) < 0)
                fail_msg("%s", err.msg);
        tree_close(tree);
        object = inventory_json_encode(&inventory);
        assert_non_null(object);
        /* and back: nothing is lost on the wire */
        if (inventory_json_decode(object, &again, &err) < 0)
                fail_msg("%s: %s", path, err.msg);
        assert_true(inventory_same(&inventory, &again));
        inventory_free(&again);
        inventory_free(&inventory);
        return object;
}

static void compare(const char *name, const json_t *got)
{
        json_t *want;
        char path[512];
        json_error_t error;

        (void) text_format(path, sizeof(path), FOLDER "/%s.json", name);
        if (getenv("REMUDA_WRITE_GOLDEN") != NULL)
                assert_int_equal(json_dump_file(got, path, JSON_INDENT(1) | JSON_REAL_PRECISION(17)), 0);
        want = json_load_file(path, 0, &error);
        if (want == NULL)
                fail_msg("%s: %s", path, error.text);
        if (!json_equal(want, got)) {
                CLEANUP(free_p) char *text = json_dumps(got, JSON_INDENT(1));

                fail_msg("%s differs; got\n%s", path, text);
        }
        json_decref(want);
}

static void every_machine_gives_its_inventory(void **state)
{
        DIR *dir = opendir(FOLDER);
        const struct dirent *entry;
        unsigned count = 0;

        (void) state;
        assert_non_null(dir);
        while ((entry = readdir(dir)) != NULL) {
                char path[512], name[256];
                json_t *got;

                if (!text_ends_with(entry->d_name, ".machine"))
                        continue;
                (void) text_format(path, sizeof(path), FOLDER "/%s", entry->d_name);
                (void) text_format(name, sizeof(name), "%.*s",
                                   (int) (strlen(entry->d_name) - strlen(".machine")), entry->d_name);
                got = look(path);
                compare(name, got);
                json_decref(got);
                count++;
        }
        (void) closedir(dir);
        assert_in_range(count, 25, 1000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_machine_gives_its_inventory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
