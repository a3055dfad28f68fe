/* The condition AcceleratorsHealthy: what it says of a node, what is news in it, and who writes it when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scheduler-extender/ledger/ledger_sick.h"
#include "scheduler-extender/node_taint.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/extender_bed.h"
#include "tests/support/test_ledger.h"

static struct ledger_sick sick[] = {
        { .id = "GPU-1", .health = HEALTH_UNHEALTHY },   { .id = "GPU-2", .health = HEALTH_QUARANTINED },
        { .id = "GPU-3", .health = HEALTH_UNHEALTHY },   { .id = "GPU-4", .health = HEALTH_UNHEALTHY },
        { .id = "GPU-5", .health = HEALTH_QUARANTINED },
};

static const struct {
        const char *what;
        unsigned total, healthy;
        uint32_t sick_count;
        enum ledger_trust_doubt doubt;
        bool had;
        const char *says; /* status, reason and message */
} rows[] = {
        { "all", 8, 8, 0, LEDGER_BELIEVED, false, "True AllDevicesHealthy 8 of 8 devices are healthy" },
        { "some", 8, 6, 2, LEDGER_BELIEVED, true,
          "False DevicesUnhealthy 6 of 8 devices are healthy; not GPU-1 (unhealthy), GPU-2 (quarantined)" },
        { "a few are named", 8, 3, 5, LEDGER_BELIEVED, true,
          "False DevicesUnhealthy 3 of 8 devices are healthy; not GPU-1 (unhealthy), GPU-2 (quarantined), "
          "GPU-3 "
          "(unhealthy), GPU-4 (unhealthy) and 1 more" },
        { "none", 1, 0, 1, LEDGER_BELIEVED, false,
          "False NoDeviceHealthy 0 of 1 devices are healthy; not GPU-1 (unhealthy)" },
        { "a silent agent", 8, 6, 2, LEDGER_AGENT_SILENT, true,
          "Unknown InventoryDoubted the node's agent is silent" },
        { "another boot", 8, 8, 0, LEDGER_OTHER_BOOT, true,
          "Unknown InventoryDoubted the node has booted since its agent told of its devices" },
        { "no device", 0, 0, 0, LEDGER_BELIEVED, false, "  " },
        { "no device any more", 0, 0, 0, LEDGER_BELIEVED, true,
          "Unknown NoInventory nobody tells of accelerators of this node any more" },
};

static void it_says_how_many_are_healthy(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct ledger *ledger = test_ledger();
                struct node_condition says;
                struct ledger_node *node;
                char text[500];

                add_node(ledger, "a", NODE_CLASS_ANY, "regular", "H100", rows[i].total, rows[i].healthy);
                node = node_of(ledger, "a");
                node->trust.doubt = (uint8_t) rows[i].doubt;
                node->sick = sick;
                node->sick_count = rows[i].sick_count;
                says = node_condition_judge(ledger, node, rows[i].had);
                (void) text_format(text, sizeof(text), "%s %s %s", says.status, says.reason, says.message);
                if (strcmp(text, rows[i].says) != 0)
                        fail_msg("%s: got \"%s\"", rows[i].what, text);
                node->sick = NULL;
                node->sick_count = 0;
                ledger_life_free(ledger);
        }
}

static const struct {
        const char *before, *now; /* status and message */
        const char *news;
        bool warning;
} news[] = {
        { " ", "True 8 of 8", NULL, false },
        { " ", "False 7 of 8", "AcceleratorsUnhealthy", true },
        { "True 8 of 8", "False 7 of 8", "AcceleratorsUnhealthy", true },
        { "False 7 of 8", "False 5 of 8", "AcceleratorsUnhealthy", true },
        { "False 5 of 8", "False 7 of 8", "AcceleratorsRecovered", false },
        { "False 7 of 8", "True 8 of 8", "AcceleratorsRecovered", false },
        { "False 7 of 8; not a", "False 7 of 8; not b", NULL, false },
        { "False 7 of 8", "Unknown the agent is silent", NULL, false },
        { "Unknown the agent is silent", "False 7 of 8", "AcceleratorsUnhealthy", true },
        { "Unknown the agent is silent", "True 8 of 8", NULL, false },
};

static struct node_condition condition_of(const char *text)
{
        struct node_condition made = { 0 };
        const char *space = strchr(text, ' ');

        memcpy(made.status, text, (size_t) (space - text));
        (void) text_copy(made.message, sizeof(made.message), space + 1);
        return made;
}

static void what_broke_and_what_recovered_is_news(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(news) / sizeof(news[0]); i++) {
                struct node_condition before = condition_of(news[i].before), now = condition_of(news[i].now);
                bool warning;
                const char *said = node_condition_news(&before, &now, &warning);

                if (warning != news[i].warning ||
                    strcmp(said == NULL ? "" : said, news[i].news == NULL ? "" : news[i].news) != 0)
                        fail_msg("%s -> %s: got %s", news[i].before, news[i].now,
                                 said == NULL ? "nothing" : said);
        }
}

#define HEALTHY(NAME, COUNT)                                                                                 \
        memory_store_merge(                                                                                  \
                b->memory, "NodeAccelerators " NAME,                                                         \
                "{\"status\":{\"groups\":[{\"name\":\"g\",\"vendor\":\"nvidia\",\"runtime\":"                \
                "\"cuda\",\"model\":\"H100\",\"resource\":\"nvidia.com/gpu\",\"fabric\":\"none\","           \
                "\"total\":8,\"healthy\":" COUNT ",\"free\":0}]}}")
#define NODE(NAME)                                                                                           \
        memory_store_merge(b->memory, "Node " NAME,                                                          \
                           "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" NAME "\"}}")

static const char *condition(struct extender_bed *b, const char *node, const char *field)
{
        char key[80];
        const json_t *list;

        (void) text_format(key, sizeof(key), "Node %s", node);
        list = json_object_get(json_object_get(json_object_get(b->memory->objects, key), "status"),
                               "conditions");
        field = json_string_value(json_object_get(json_array_get(list, 0), field));
        return field == NULL ? "" : field;
}

static void it_is_written_when_it_changes(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);
        unsigned writes;

        (void) state;
        NODE("a");
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        memory_store_tell(b->memory);
        conditions_look(b->extender);
        EXTENDER_BED_WAIT(b, b->extender->labels.writing == 0);
        assert_string_equal(condition(b, "a", "status"), ""); /* off by itself */
        b->options.node_conditions = "on";
        NODE("a");
        EXTENDER_BED_WAIT(b, strcmp(condition(b, "a", "status"), "True") == 0);
        assert_string_equal(condition(b, "a", "type"), "AcceleratorsHealthy");
        assert_string_not_equal(condition(b, "a", "lastTransitionTime"), "");
        assert_int_equal(memory_store_count(b->memory, "event Accelerators"), 0);
        HEALTHY("a", "7");
        EXTENDER_BED_WAIT(b, strcmp(condition(b, "a", "status"), "False") == 0);
        assert_string_equal(condition(b, "a", "message"), "7 of 8 devices are healthy");
        assert_int_equal(memory_store_count(b->memory, "event AcceleratorsUnhealthy /a"), 1);
        HEALTHY("a", "6");
        EXTENDER_BED_WAIT(b, strcmp(condition(b, "a", "message"), "6 of 8 devices are healthy") == 0);
        assert_string_equal(condition(b, "a", "lastTransitionTime"), ""); /* a merge by type leaves it */
        HEALTHY("a", "8");
        EXTENDER_BED_WAIT(b, strcmp(condition(b, "a", "status"), "True") == 0);
        assert_int_equal(memory_store_count(b->memory, "event AcceleratorsRecovered /a"), 1);
        memory_store_tell(b->memory);
        writes = memory_store_count(b->memory, "patch Node a");
        for (int i = 0; i < 5; i++)
                conditions_look(b->extender);
        assert_int_equal(memory_store_count(b->memory, "patch Node a"), writes);
        memory_store_drop(b->memory, "NodeAccelerators a");
        EXTENDER_BED_WAIT(b, strcmp(condition(b, "a", "reason"), "NoInventory") == 0);
        memory_store_drop(b->memory, "Node a");
        memory_store_tell(b->memory);
        assert_int_equal(b->extender->conditions.nodes.count, 0);
        extender_bed_free(b);
}

static void a_refusal_ends_writing_for_a_minute(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        b->options.node_conditions = "on";
        memory_store_refuse(b->memory, "patch Node a", -EPERM, "no right");
        NODE("a");
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "conditions node=a error=\"no right\""));
        assert_true(b->extender->conditions.not_before_usec > loop_now_usec(b->folder->loop) + 50000000);
        assert_string_equal(condition(b, "a", "status"), "");
        memory_store_refuse(b->memory, NULL, 0, "");
        conditions_look(b->extender);
        EXTENDER_BED_WAIT(b, b->extender->labels.writing == 0);
        assert_string_equal(condition(b, "a", "status"), "");
        b->extender->conditions.not_before_usec = 0;
        EXTENDER_BED_WAIT(b, strcmp(condition(b, "a", "status"), "True") == 0);
        extender_bed_free(b);
}

static void so_many_are_written_in_a_minute(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);

        (void) state;
        b->options.node_conditions = "on";
        b->extender->conditions.minute_usec = loop_now_usec(b->folder->loop);
        b->extender->conditions.written = CONDITIONS_PER_MINUTE - 1;
        NODE("a");
        NODE("b");
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        memory_store_merge(b->memory, "NodeAccelerators b", EXTENDER_BED_INVENTORY("b"));
        memory_store_tell(b->memory);
        EXTENDER_BED_WAIT(b, b->extender->conditions.written == CONDITIONS_PER_MINUTE);
        conditions_look(b->extender);
        conditions_look(b->extender);
        memory_store_tell(b->memory);
        EXTENDER_BED_WAIT(
                b, (condition(b, "a", "status")[0] != '\0') + (condition(b, "b", "status")[0] != '\0') == 1);
        b->extender->conditions.minute_usec -= 60000000; /* the next minute */
        EXTENDER_BED_WAIT(b,
                          condition(b, "a", "status")[0] != '\0' && condition(b, "b", "status")[0] != '\0');
        extender_bed_free(b);
}

static const struct {
        const char *reason;
        bool on;
        enum node_taint wanted;
} taints[] = {
        { "NoDeviceHealthy", true, NODE_TAINT_SET },       { "DevicesUnhealthy", true, NODE_TAINT_CLEARED },
        { "AllDevicesHealthy", true, NODE_TAINT_CLEARED }, { "InventoryDoubted", true, NODE_TAINT_STAYS },
        { "NoInventory", true, NODE_TAINT_CLEARED },       { "", true, NODE_TAINT_CLEARED },
        { "NoDeviceHealthy", false, NODE_TAINT_CLEARED },  { "InventoryDoubted", false, NODE_TAINT_CLEARED },
};

static void a_taint_is_for_nodes_without_a_healthy_device(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(taints) / sizeof(taints[0]); i++) {
                struct node_condition says = { 0 };

                (void) text_copy(says.reason, sizeof(says.reason), taints[i].reason);
                if (node_taint_judge(&says, taints[i].on) != taints[i].wanted)
                        fail_msg("%s, %s", taints[i].reason, taints[i].on ? "on" : "off");
        }
}

/* The keys of the taints of a Node, in their order. */
static const char *taints_of(struct extender_bed *b, const char *node, char text[200])
{
        char key[80];
        json_t *taint;
        size_t i;

        (void) text_format(key, sizeof(key), "Node %s", node);
        text[0] = '\0';
        json_array_foreach(
                json_object_get(json_object_get(json_object_get(b->memory->objects, key), "spec"), "taints"),
                i, taint)
        {
                (void) strcat(strcat(text, json_string_value(json_object_get(taint, "key"))), " ");
        }
        return text;
}

#define TAINTS(NAME, LIST) memory_store_merge(b->memory, "Node " NAME, "{\"spec\":{\"taints\":[" LIST "]}}")
#define THEIRS             "{\"key\":\"team\",\"effect\":\"NoSchedule\"}"

static void it_comes_and_goes_among_those_of_others(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);
        char text[200];
        unsigned writes;

        (void) state;
        NODE("a");
        TAINTS("a", THEIRS);
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        HEALTHY("a", "0");
        memory_store_tell(b->memory);
        conditions_look(b->extender);
        EXTENDER_BED_WAIT(b, b->extender->labels.writing == 0);
        assert_string_equal(taints_of(b, "a", text), "team "); /* off by itself */
        b->options.taint_all_bad = true;
        NODE("a");
        EXTENDER_BED_WAIT(b, strcmp(taints_of(b, "a", text), "team " NODE_TAINT_KEY " ") == 0);
        assert_string_equal(condition(b, "a", "status"), ""); /* the condition is another option */
        EXTENDER_BED_WAIT(b, memory_store_count(b->memory, "event AcceleratorsTainted /a") == 1);
        memory_store_tell(b->memory);
        writes = memory_store_count(b->memory, "patch Node a");
        for (int i = 0; i < 5; i++)
                conditions_look(b->extender);
        assert_int_equal(memory_store_count(b->memory, "patch Node a"), writes);
        HEALTHY("a", "1");
        EXTENDER_BED_WAIT(b, strcmp(taints_of(b, "a", text), "team ") == 0);
        EXTENDER_BED_WAIT(b, memory_store_count(b->memory, "event AcceleratorsUntainted /a") == 1);
        HEALTHY("a", "0");
        EXTENDER_BED_WAIT(b, strcmp(taints_of(b, "a", text), "team " NODE_TAINT_KEY " ") == 0);
        b->options.taint_all_bad = false; /* the next one, without the option, takes it away */
        EXTENDER_BED_WAIT(b, strcmp(taints_of(b, "a", text), "team ") == 0);
        memory_store_tell(b->memory);
        EXTENDER_BED_WAIT(b, b->extender->conditions.nodes.count == 0);
        extender_bed_free(b);
}

/* Without the right for it: the condition is written all the same, of this node and of others. */
static void a_taint_that_is_refused_keeps_no_condition(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);
        char text[200];

        (void) state;
        b->options.taint_all_bad = true;
        b->options.node_conditions = "on";
        NODE("a");
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        HEALTHY("a", "0");
        memory_store_tell(b->memory);
        conditions_look(b->extender);
        assert_int_equal(memory_store_count(b->memory, "patch Node a"), 1); /* the condition comes first */
        assert_string_equal(condition(b, "a", "status"), "False");
        assert_string_equal(taints_of(b, "a", text), "");
        memory_store_refuse(b->memory, "patch Node a", -EPERM, "no right");
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "taint=set error=\"no right\""));
        assert_true(b->extender->conditions.taint_not_before_usec > loop_now_usec(b->folder->loop));
        memory_store_refuse(b->memory, NULL, 0, "");
        HEALTHY("a", "8");
        EXTENDER_BED_WAIT(b, strcmp(condition(b, "a", "status"), "True") == 0);
        extender_bed_free(b);
}

/* What came meanwhile is not lost: a Node that has changed is written as it is then, without a pause. */
static void a_taint_of_others_that_came_meanwhile_stays(void **state)
{
        struct extender_bed *b = extender_bed_begin(false);
        char text[200];

        (void) state;
        b->options.taint_all_bad = true;
        NODE("a");
        memory_store_merge(b->memory, "NodeAccelerators a", EXTENDER_BED_INVENTORY("a"));
        HEALTHY("a", "0");
        memory_store_tell(b->memory);
        TAINTS("a", THEIRS); /* not told yet */
        conditions_look(b->extender);
        assert_int_equal(memory_store_count(b->memory, "patch Node a"), 1);
        assert_string_equal(taints_of(b, "a", text), "team ");
        EXTENDER_BED_WAIT(b, strcmp(taints_of(b, "a", text), "team " NODE_TAINT_KEY " ") == 0);
        assert_int_equal(b->extender->conditions.not_before_usec, 0);
        extender_bed_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_says_how_many_are_healthy),
                cmocka_unit_test(what_broke_and_what_recovered_is_news),
                cmocka_unit_test(it_is_written_when_it_changes),
                cmocka_unit_test(a_refusal_ends_writing_for_a_minute),
                cmocka_unit_test(so_many_are_written_in_a_minute),
                cmocka_unit_test(a_taint_is_for_nodes_without_a_healthy_device),
                cmocka_unit_test(it_comes_and_goes_among_those_of_others),
                cmocka_unit_test(a_taint_that_is_refused_keeps_no_condition),
                cmocka_unit_test(a_taint_of_others_that_came_meanwhile_stays),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
