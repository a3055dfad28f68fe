/* What the page says of chips: their states, who has them, and what became of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/page/page_detail.h"
#include "scheduler-extender/page/page_fleet.h"
#include "scheduler-extender/page/page_kept.h"
#include "tests/support/told_cluster.h"

#define DEVICE(ID, HEALTH, MORE)                                                                             \
        "{id: " ID ", group: g, vendor: nvidia, model: H100, index: 0, pci: \"\", numa: 0, nodes: [], "      \
        "health: " HEALTH ", reason: Said, message: \"it says so\", since: \"2026-11-21T09:50:00Z\"" MORE    \
        "}"

struct bed {
        struct dir_store *folder;
        struct cluster *cluster;
        struct page_kept kept;
};

static void on_told(void *userdata, const char *node, const struct inventory *inventory)
{
        page_kept_told(&((struct bed *) userdata)->kept, node, inventory, TOLD_NOW_USEC);
}

static void begin(struct bed *bed, const char *yaml)
{
        *bed = (struct bed){ .folder = dir_store_new() };
        bed->cluster =
                told_cluster(bed->folder, (struct cluster_options){ .told = on_told, .userdata = bed }, yaml);
}

static void end(struct bed *bed)
{
        page_kept_free(&bed->kept);
        cluster_close(bed->cluster);
        dir_store_free(bed->folder);
}

static struct page_fleet_node node_of(struct bed *bed, const char *name)
{
        struct page_kept_node *node = (struct page_kept_node *) name_map_find(&bed->kept.nodes, name);

        assert_non_null(node);
        return (struct page_fleet_node){ .name = node->entry.key,
                                         .told = &node->told,
                                         .ledger = cluster_ledger(bed->cluster),
                                         .claims = cluster_claims(bed->cluster),
                                         .rules = cluster_rules(bed->cluster) };
}

static json_t *read_back(struct text *text)
{
        json_error_t where;
        json_t *json = json_loads(text->data, 0, &where);

        if (json == NULL)
                fail_msg("%s in %s", where.text, text->data);
        assert_null(strchr(text->data, '\n'));
        text_free(text);
        return json;
}

/* The node twice, as the fleet tells of it. */
static json_t *brief(struct bed *bed, const char *name, bool with_ids, struct page_fleet_totals *ret_totals)
{
        struct text text = { 0 };
        struct json_writer w = { .text = &text, .compact = true };
        struct page_fleet_node node = node_of(bed, name);
        struct page_fleet_columns columns = { .totals = { .chips = 0 } };

        assert_int_equal(page_fleet_add(&columns, &node, with_ids), 0);
        *ret_totals = columns.totals;
        assert_int_equal(page_fleet_add(&columns, &node, with_ids), 0);
        json_writer_open(&w, NULL, '{');
        page_fleet_write(&w, &columns);
        json_writer_close(&w, '}');
        page_fleet_columns_free(&columns);
        return read_back(&text);
}

/* The node's object by itself, read back. */
static json_t *written(struct bed *bed, const char *name, struct page_fleet_totals *ret_totals)
{
        struct text text = { 0 };
        struct json_writer w = { .text = &text, .compact = true };
        struct page_fleet_node node = node_of(bed, name);

        json_decref(brief(bed, name, false, ret_totals));
        assert_int_equal(page_detail_write(&w, NULL, &node), 0);
        return read_back(&text);
}

static const char *element(const json_t *object, const char *name, size_t i)
{
        return json_string_value(json_array_get(json_object_get(object, name), i));
}

static json_t *chip(const json_t *node, size_t i)
{
        json_t *group = json_array_get(json_object_get(node, "groups"), 0);

        return json_array_get(json_object_get(group, "chips"), i);
}

static const char *word(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));

        return text == NULL ? "" : text;
}

static void every_state_has_its_word(void **state)
{
        static const struct {
                const char *id, *word, *pod, *reason;
        } rows[] = {
                { "a", "held", "default/two", "" }, { "b", "sick", "default/two", "Said" },
                { "c", "degraded", "", "Said" },    { "d", "quarantined", "", "Said" },
                { "e", "unknown", "", "Said" },     { "f", "free", "", "" },
        };
        struct page_fleet_totals totals = { .chips = 0 };
        struct bed bed;
        json_t *node;

        (void) state;
        begin(&bed,
              TOLD_NODE("n", "any", "regular", TOLD_GROUP("g", "H100", "6", "3"),
                        DEVICE("a", "healthy", "") ", " DEVICE("b", "unhealthy", ", heldBy: [default/two]") ", " DEVICE(
                                "c", "degraded",
                                "") ", " DEVICE("d", "quarantined",
                                                "") ", " DEVICE("e", "unknown",
                                                                ", usable: false") ", " DEVICE("f", "healthy",
                                                                                               ""))
                      TOLD_POD("two", "", "2", "nodeName: n, "));
        node = written(&bed, "n", &totals);
        assert_string_equal(word(node, "node"), "n");
        assert_string_equal(word(node, "pool"), "regular");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const json_t *c = chip(node, i);

                if (strcmp(word(c, "id"), rows[i].id) != 0 || strcmp(word(c, "state"), rows[i].word) != 0 ||
                    strcmp(word(c, "pod"), rows[i].pod) != 0 ||
                    strcmp(word(c, "reason"), rows[i].reason) != 0)
                        fail_msg("%s: %s %s %s", rows[i].id, word(c, "state"), word(c, "pod"),
                                 word(c, "reason"));
        }
        assert_string_equal(word(chip(node, 1), "since"), "2026-11-21T09:50:00Z");
        assert_int_equal(totals.chips, 6);
        assert_int_equal(totals.states[PAGE_FLEET_SICK], 1);
        assert_int_equal(totals.states[PAGE_FLEET_FREE], 1);
        json_decref(node);
        end(&bed);
}

static void a_chip_of_the_fleet_is_a_letter(void **state)
{
        struct page_fleet_totals totals = { .chips = 0 };
        json_t *fleet, *kinds, *ill;
        struct bed bed;

        (void) state;
        begin(&bed, TOLD_NODE("n", "any", "regular",
                              TOLD_GROUP("g", "H100", "4", "2") ", " TOLD_GROUP("h", "A100", "2", "1"),
                              DEVICE("a", "healthy", "") ", " DEVICE("\"b 1%\"", "unhealthy", "") ", " DEVICE(
                                      "c", "healthy", "")) TOLD_POD("two", "", "2", "nodeName: n, "));
        fleet = brief(&bed, "n", true, &totals);
        kinds = json_object_get(fleet, "kinds");
        ill = json_object_get(fleet, "ill");
        assert_int_equal(json_array_size(kinds), 2); /* of four groups */
        assert_string_equal(word(json_array_get(kinds, 1), "model"), "A100");
        for (size_t i = 0; i < 2; i++) {
                assert_string_equal(element(fleet, "nodes", i), "n");
                assert_string_equal(element(fleet, "chips", i), "0hshs 1fs"); /* three are listed */
                assert_string_equal(element(fleet, "ids", i), "a b%201%25 c,");
        }
        assert_int_equal(json_array_size(ill), 2);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(ill, 0), "group")), 0);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(ill, 0), "chip")), 1);
        assert_string_equal(word(json_array_get(ill, 0), "node"), "n");
        assert_string_equal(word(json_array_get(ill, 0), "reason"), "Said");
        assert_string_equal(word(json_array_get(ill, 0), "since"), "2026-11-21T09:50:00Z");
        assert_int_equal(json_array_size(json_object_get(fleet, "stale")), 0);
        assert_int_equal(totals.chips, 6);
        json_decref(fleet);

        fleet = brief(&bed, "n", false, &totals);
        assert_string_equal(element(fleet, "ids", 0), "");
        json_decref(fleet);
        end(&bed);
}

static void every_state_has_a_letter_of_its_own(void **state)
{
        (void) state;
        for (int i = 0; i < PAGE_FLEET_STATES; i++)
                for (int j = 0; j < i; j++)
                        assert_int_not_equal(page_fleet_state_word((enum page_fleet_state) i)[0],
                                             page_fleet_state_word((enum page_fleet_state) j)[0]);
}

static void who_holds_what_nobody_tells_is_counted(void **state)
{
        struct page_fleet_totals totals = { .chips = 0 };
        struct bed bed;
        json_t *node;

        (void) state;
        begin(&bed, TOLD_NODE("n", "any", "reserved", TOLD_GROUP("g", "H100", "4", "3"), "")
                            TOLD_POD("regular", "", "2", "nodeName: n, "));
        node = written(&bed, "n", &totals);
        assert_int_equal(totals.chips, 4); /* none is told one by one: as many as the group says */
        assert_int_equal(totals.states[PAGE_FLEET_BORROWED], 2);
        assert_int_equal(totals.states[PAGE_FLEET_FREE], 1);
        assert_int_equal(totals.states[PAGE_FLEET_SICK], 1);
        assert_true(
                json_is_true(json_object_get(json_array_get(json_object_get(node, "groups"), 0), "counted")));
        assert_null(json_object_get(chip(node, 0), "id"));
        json_decref(node);
        end(&bed);
}

#define ATTRIBUTES "attributes: {vendor: {string: nvidia}, group: {string: g}}"
#define SLICE                                                                                                \
        "{spec: {driver: remuda.dev, nodeName: n, pool: {name: n, generation: 1, resourceSliceCount: 1}, "   \
        "devices: [{name: gpu-a, " ATTRIBUTES "}, {name: gpu-b, " ATTRIBUTES "}, {name: gpu-c, " ATTRIBUTES  \
        "}]}}"
#define CLAIM(DEVICE, POD) CLAIM_OF(DEVICE, POD, "u-" POD)
#define CLAIM_OF(DEVICE, POD, UID)                                                                           \
        "{spec: {devices: {requests: [{name: r, exactly: {deviceClassName: x}}]}}, status: {allocation: "    \
        "{devices: {results: [{request: r, driver: remuda.dev, pool: n, device: " DEVICE                     \
        "}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, "         \
        "values: [n]}]}]}}, reservedFor: [{resource: pods, name: " POD ", uid: " UID "}]}}"
#define CLAIMANT(NAME, CLAIM)                                                                                \
        "- {kind: Pod, metadata: {name: " NAME ", namespace: default, uid: u-" NAME                          \
        ", creationTimestamp: \"2026-11-21T09:00:00Z\"}, spec: {nodeName: n, resourceClaims: [{name: c, "    \
        "resourceClaimName: " CLAIM "}], containers: [{name: c}]}}\n"

static void take_slice(struct bed *bed, const char *yaml)
{
        json_t *slice = told_parse(yaml);
        struct err err = { 0 };

        assert_int_equal(cluster_claims_take_slice(bed->cluster, "s", slice, &err), 0);
        json_decref(slice);
}

static void take_claim(struct bed *bed, const char *key, const char *yaml)
{
        json_t *claim = told_parse(yaml);
        struct err err = { 0 };

        assert_int_equal(cluster_claims_take_claim(bed->cluster, key, claim, &err), 0);
        json_decref(claim);
}

/* ... but for what claims say: which device, and whose. */
static void a_claim_says_which_chip_it_has(void **state)
{
        static const char *const pods[] = { "", "default/p", "default/q" };
        struct page_fleet_totals totals = { .chips = 0 };
        struct bed bed;
        json_t *node;

        (void) state;
        begin(&bed, TOLD_NODE("n", "any", "regular", TOLD_GROUP("g", "H100", "3", "3"),
                              DEVICE("GPU-A", "healthy", "") ", " DEVICE("GPU-B", "healthy", "") ", " DEVICE(
                                      "GPU-C", "unhealthy", ", heldBy: [default/q]")) CLAIMANT("p", "of-p")
                            CLAIMANT("q", "of-q"));
        take_slice(&bed, SLICE);
        take_claim(&bed, "default/of-q", CLAIM("gpu-c", "q"));
        take_claim(&bed, "default/of-p", CLAIM("gpu-b", "p"));
        node = written(&bed, "n", &totals);
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++)
                if (strcmp(word(chip(node, i), "pod"), pods[i]) != 0)
                        fail_msg("chip %zu: %s", i, json_dumps(node, 0));
        assert_int_equal(totals.states[PAGE_FLEET_FREE], 1);
        assert_int_equal(totals.states[PAGE_FLEET_HELD], 1);
        assert_null(json_object_get(json_array_get(json_object_get(node, "groups"), 0), "counted"));
        json_decref(node);

        take_claim(&bed, "default/of-p", CLAIM_OF("gpu-b", "p", "another")); /* of a pod that was called so */
        node = written(&bed, "n", &totals);
        assert_string_equal(word(chip(node, 1), "state"), "held");
        assert_string_equal(word(chip(node, 1), "pod"), "");
        json_decref(node);
        take_claim(&bed, "default/of-p", CLAIM("gpu-b", "p"));

        told_cluster_take(bed.cluster,
                          TOLD_POD("plugin", "", "1", "nodeName: n, ")); /* the one that is left */
        node = written(&bed, "n", &totals);
        assert_string_equal(word(chip(node, 0), "pod"), "default/plugin");
        assert_string_equal(word(chip(node, 1), "pod"), "default/p");
        json_decref(node);
        end(&bed);
}

static void names_from_outside_stay_text(void **state)
{
        struct bed bed;
        struct page_fleet_totals totals;
        json_t *node;

        (void) state;
        begin(&bed, TOLD_NODE("n", "any", "regular", TOLD_GROUP("g", "\"</script><b>\\\"\\x01\"", "1", "0"),
                              DEVICE("\"<img src=x>\\\"\\n\"", "unhealthy", "")));
        node = written(&bed, "n", &totals); /* it is JSON on one line */
        assert_string_equal(word(chip(node, 0), "id"), "<img src=x>\"\n");
        assert_string_equal(word(json_array_get(json_object_get(node, "groups"), 0), "model"),
                            "</script><b>\"\x01");
        json_decref(node);
        node = brief(&bed, "n", true, &totals);
        assert_string_equal(word(json_array_get(json_object_get(node, "kinds"), 0), "model"),
                            "</script><b>\"\x01");
        json_decref(node);
        end(&bed);
}

static const char *fault(const struct bed *bed, size_t i)
{
        return i < bed->kept.faults.count ? page_faults_at(&bed->kept.faults, i)->to : "none";
}

#define ONE(HEALTH)                                                                                          \
        TOLD_NODE("n", "any", "regular", TOLD_GROUP("g", "H100", "1", "1"), DEVICE("a", HEALTH, ""))

static void changes_are_faults_and_nodes_to_be_told(void **state)
{
        struct bed bed;
        struct ledger *ledger;

        (void) state;
        begin(&bed, ONE("healthy"));
        ledger = cluster_ledger(bed.cluster);
        page_kept_clean(&bed.kept, ledger);
        assert_false(((struct page_kept_node *) name_map_find(&bed.kept.nodes, "n"))->anew);
        assert_int_equal(bed.kept.faults.count, 0);
        told_cluster_take(bed.cluster, ONE("unhealthy"));
        assert_true(((struct page_kept_node *) name_map_find(&bed.kept.nodes, "n"))->anew);
        assert_string_equal(fault(&bed, 0), "sick");
        told_cluster_take(bed.cluster, ONE("unhealthy"));
        assert_string_equal(fault(&bed, 1), "none"); /* it is told once */
        told_cluster_take(bed.cluster, ONE("healthy"));
        assert_string_equal(fault(&bed, 1), "recovered");
        told_cluster_take(bed.cluster,
                          TOLD_NODE("n", "any", "regular", TOLD_GROUP("g", "H100", "1", "1"), ""));
        assert_string_equal(fault(&bed, 2), "gone");
        assert_string_equal(page_kept_next(&bed.kept)->entry.key, "n");
        assert_null(page_kept_next(&bed.kept)); /* once, however often it changed */

        page_kept_scan(&bed.kept, ledger);
        while (page_kept_next(&bed.kept) != NULL)
                ;
        told_cluster_take(bed.cluster, TOLD_POD("p", "", "1", "nodeName: n, "));
        page_kept_scan(&bed.kept, ledger);
        assert_string_equal(page_kept_next(&bed.kept)->entry.key, "n"); /* the ledger counts it */
        page_kept_scan(&bed.kept, ledger);
        assert_null(page_kept_next(&bed.kept));

        page_faults_expire(&bed.kept.faults, TOLD_NOW_USEC + PAGE_FAULTS_USEC + 1);
        assert_int_equal(bed.kept.faults.count, 0);
        assert_int_equal(bed.kept.faults.total, 3);
        end(&bed);
}

static void no_more_faults_are_kept_than_so_many(void **state)
{
        struct page_faults faults = { .first = 0 };

        (void) state;
        for (size_t i = 0; i < PAGE_FAULTS_MAX + 5; i++)
                page_faults_node(&faults, "n", i % 2 == 0, "it is silent", TOLD_NOW_USEC + i);
        assert_int_equal(faults.count, PAGE_FAULTS_MAX);
        assert_int_equal(page_faults_at(&faults, 0)->usec, TOLD_NOW_USEC + 5);
        page_faults_free(&faults);
}

/* Any node's agent may write what it likes into its own object. */
static void no_more_chips_are_drawn_than_a_node_may_have(void **state)
{
        struct page_fleet_totals totals = { .chips = 0 };
        struct bed bed;

        (void) state;
        begin(&bed, TOLD_NODE("n", "any", "regular",
                              TOLD_GROUP("g", "H100", "2000000000",
                                         "2000000000") ", " TOLD_GROUP("h", "A100", "50000000", "3"),
                              ""));
        json_decref(written(&bed, "n", &totals));
        assert_int_equal(totals.chips, DEVICES_MAX);
        end(&bed);
}

static void nodes_stand_as_people_count(void **state)
{
        static const char *const sorted[] = { "a",   "a-1",  "n01", "n1",  "n1-b", "n02",   "n2",
                                              "n09", "n010", "n10", "n20", "n100", "n100a", "nb" };
        struct name_map map = { 0 };
        struct name_map_entry **all, *e;

        (void) state;
        for (size_t i = ARRAY_SIZE(sorted); i-- > 0;)
                assert_non_null(name_map_make(&map, sorted[(i * 5) % ARRAY_SIZE(sorted)], sizeof(*e)));
        all = page_kept_sorted(&map);
        assert_non_null(all);
        for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
                assert_string_equal(all[i]->key, sorted[i]);
        free(all);
        while ((e = name_map_first(&map)) != NULL) {
                name_map_remove(&map, e);
                free(e);
        }
        name_map_free(&map);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_state_has_its_word),
                cmocka_unit_test(a_chip_of_the_fleet_is_a_letter),
                cmocka_unit_test(every_state_has_a_letter_of_its_own),
                cmocka_unit_test(who_holds_what_nobody_tells_is_counted),
                cmocka_unit_test(a_claim_says_which_chip_it_has),
                cmocka_unit_test(no_more_chips_are_drawn_than_a_node_may_have),
                cmocka_unit_test(names_from_outside_stay_text),
                cmocka_unit_test(changes_are_faults_and_nodes_to_be_told),
                cmocka_unit_test(no_more_faults_are_kept_than_so_many),
                cmocka_unit_test(nodes_stand_as_people_count),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
