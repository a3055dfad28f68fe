/* See controller_bed.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "io/loop.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "tests/support/controller_bed.h"
#include "tests/support/job_fixture.h"

/* What is told goes to the ledger and to the controller, as a cluster does it. */
static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct bed *b = userdata;
        const char *slash = strchr(key, '/');

        if (object != NULL && (kind == STORE_POD || kind == STORE_NODE || kind == STORE_INVENTORY))
                (void) cluster_take(b->cluster, object, NULL);
        else if (kind == STORE_POD && slash != NULL)
                ledger_pods_drop(b->cluster->ledger, "default", slash + 1);
        else if (kind == STORE_INVENTORY)
                ledger_nodes_drop_inventory(b->cluster->ledger, key);
        controller_observe(b->controller, kind, key, object);
        controller_think(b->controller);
}

static bool leads(void *userdata)
{
        return ((struct bed *) userdata)->leads;
}

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        text_printf(&((struct bed *) userdata)->said, "%s %s %s\n",
                    priority <= LOG_WARNING ? "warning" : "info", event, text);
}

static void open_cluster(struct bed *b)
{
        const struct store_options store = { .changed = on_changed, .userdata = b };

        b->cluster = calloc(1, sizeof(*b->cluster));
        assert_non_null(b->cluster);
        b->cluster->loop = b->loop;
        b->cluster->is_directory = true; /* whose nodes need no Node objects */
        b->cluster->synced = ~0u;
        b->cluster->options.rules = fixture_rules;
        b->cluster->ledger = ledger_life_new();
        b->cluster->claims = claims_new();
        assert_non_null(b->cluster->ledger);
        assert_non_null(b->cluster->claims);
        ledger_chips_mark(b->cluster->ledger, GPU);
        b->store = memory_store_new(b->loop, &store);
        b->cluster->store = &b->store->store;
}

struct bed *bed_begin(struct controller_options options)
{
        struct bed *b = calloc(1, sizeof(*b));

        assert_non_null(b);
        b->leads = true;
        assert_int_equal(loop_new(&b->loop, NULL), 0);
        open_cluster(b);
        options.cluster = b->cluster;
        options.pods.launcher_image = "us";
        options.pods.scheduler_name = "remuda";
        options.pods.grace_sec = 30;
        options.leads = leads;
        options.log = on_log;
        options.userdata = b;
        assert_int_equal(controller_new(b->loop, &options, &b->controller, NULL), 0);
        bed_put_node(b, "a", "H100", 8);
        memory_store_tell(b->store);
        controller_synced(b->controller, STORE_TRAINING_JOB);
        controller_synced(b->controller, STORE_POD);
        controller_lead(b->controller);
        return b;
}

void bed_end(struct bed *b)
{
        store_close(b->cluster->store); /* what is being written is answered */
        b->cluster->store = NULL;
        controller_free(b->controller);
        cluster_close(b->cluster);
        sd_event_unref(b->loop);
        text_free(&b->said);
        free(b);
}

void bed_settle(struct bed *b)
{
        uint64_t end = clock_monotonic_usec() + patience_usec();

        for (int quiet = 0; quiet < 3;) {
                size_t before = json_array_size(b->store->lines);
                int ran;

                if (clock_monotonic_usec() > end)
                        fail_msg("it never comes to rest; said:\n%s", b->said.data);
                memory_store_tell(b->store);
                if (b->controller->plan_wanted &&
                    b->controller->leading) { /* a slow machine plans more seldom */
                        b->controller->plan_again_usec = 0;
                        controller_think(b->controller);
                }
                ran = sd_event_run(b->loop, 0);
                quiet = ran > 0 || json_array_size(b->store->changed) > 0 ||
                                        json_array_size(b->store->lines) > before
                                ? 0
                                : quiet + 1;
        }
}

void bed_look(struct bed *b, const char *job)
{
        struct record *record = bed_record(b, job);

        record->retry_usec = record->plan_after_usec = record->said_usec = record->pace.again_usec = 0;
        for (struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                pod->retry_usec = 0;
        b->controller->plan_again_usec = 0;
        controller_queue(record);
        controller_want_plan(b->controller);
        bed_settle(b);
}

bool bed_said(const struct bed *b, const char *words)
{
        return b->said.data != NULL && strstr(b->said.data, words) != NULL;
}

void bed_put_node(struct bed *b, const char *name, const char *model, unsigned chips)
{
        char key[64], json[700];

        (void) text_format(key, sizeof(key), "NodeAccelerators %s", name);
        (void) text_format(
                json, sizeof(json),
                "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"NodeAccelerators\",\"metadata\":"
                "{\"name\":\"%s\"},\"status\":{\"generation\":1,\"bootID\":\"b\",\"nodeClass\":"
                "\"any\",\"pool\":\"regular\",\"devices\":[],\"groups\":[{\"name\":\"g\","
                "\"vendor\":\"nvidia\",\"runtime\":\"cuda\",\"model\":\"%s\",\"resource\":\"" GPU
                "\",\"fabric\":\"none\",\"total\":%u,\"healthy\":%u,\"free\":0,\"tflopsBf16\":100,"
                "\"memoryBytes\":85899345920}]}}",
                name, model, chips, chips);
        memory_store_merge(b->store, key, json);
}

static const char *name_of(char name[160], const char *kind, const char *of)
{
        (void) text_format(name, 160, "%s default/%s", kind, of);
        return name;
}

void bed_put_job(struct bed *b, const char *name, const char *fields)
{
        char json[2000];

        (void) text_format(json, sizeof(json),
                           "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{"
                           "\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"u-%s\",\"generation\":1,"
                           "\"creationTimestamp\":\"2026-11-21T10:00:00Z\"},\"spec\":{\"globalBatch\":64,"
                           "\"programs\":{\"cuda\":{\"image\":\"img\",\"command\":[\"/opt/t\"]}},%s}}",
                           name, name, fields);
        bed_merge(b, "TrainingJob", name, json);
}

void bed_merge(struct bed *b, const char *kind, const char *name, const char *json)
{
        char key[160];

        memory_store_merge(b->store, name_of(key, kind, name), json);
}

void bed_drop(struct bed *b, const char *kind, const char *name)
{
        char key[160];

        memory_store_drop(b->store, name_of(key, kind, name));
}

const char *bed_text(struct bed *b, const char *kind, const char *name, const char *path)
{
        char key[160];

        return memory_store_text(b->store, name_of(key, kind, name), path);
}

bool bed_is_there(struct bed *b, const char *pod)
{
        return bed_text(b, "Pod", pod, "")[0] != '\0';
}

bool bed_is(struct bed *b, const char *job, const char *phase, const char *reason)
{
        return (phase == NULL || strcmp(bed_text(b, "TrainingJob", job, "status|phase"), phase) == 0) &&
               (reason == NULL || strcmp(bed_text(b, "TrainingJob", job, "status|reason"), reason) == 0);
}

struct record *bed_record(struct bed *b, const char *job)
{
        char key[160];

        (void) text_format(key, sizeof(key), "default/%s", job);
        return controller_find(b->controller, key);
}

void bed_run_job(struct bed *b, const char *name, const char *fields)
{
        char group[80], manager[80];

        (void) text_format(group, sizeof(group), "%s-w0-0", name);
        (void) text_format(manager, sizeof(manager), "%s-m0", name);
        bed_put_job(b, name, fields);
        BED_WAIT(b, bed_is_there(b, manager) && bed_is_there(b, group));
        bed_merge(b, "Pod", group, BED_RUNS);
        bed_merge(b, "Pod", manager, BED_RUNS);
        BED_WAIT(b, bed_is(b, name, "Running", NULL));
}
