/* Pods, Secrets and the manager's plan say what the plan of their job says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "io/tls/tls_keys.h"
#include "job/controller/job_keys.h"
#include "job/controller/job_pods.h"
#include "job/launcher/subtask.h"
#include "job/plan/manager_plan.h"
#include "scheduler-extender/wire/pod_json.h"
#include "tests/support/job_fixture.h"

static const char *at(json_t *value, const char *path)
{
        char name[64];

        while (*path != '\0' && value != NULL) {
                size_t length = strcspn(path, ".");

                (void) snprintf(name, sizeof(name), "%.*s", (int) length, path);
                value = json_is_array(value) ? json_array_get(value, (size_t) atoi(name))
                                             : json_object_get(value, name);
                path += length + (path[length] == '.');
        }
        return json_is_string(value) ? json_string_value(value) : "";
}

/* Of the main container's command, in this order. */
static bool has_words(const json_t *pod, const char *words)
{
        const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
        const json_t *command = json_object_get(json_array_get(containers, 0), "command"), *word;
        struct text text = { 0 };
        bool found;
        size_t i;

        json_array_foreach((json_t *) command, i, word) text_printf(&text, "%s ", json_string_value(word));
        found = strstr(text.data, words) != NULL;
        text_free(&text);
        return found;
}

/* A Secret, or one entry of it. */
static bool mounts(const json_t *pod, const char *name)
{
        json_t *volumes = json_object_get(json_object_get(pod, "spec"), "volumes"), *volume, *item;
        size_t i, k;

        json_array_foreach(volumes, i, volume)
        {
                if (strcmp(at(volume, "secret.secretName"), name) == 0)
                        return true;
                json_array_foreach(json_object_get(json_object_get(volume, "secret"), "items"), k,
                                   item) if (strcmp(at(item, "key"), name) == 0) return true;
        }
        return false;
}

/* The size of the volume that is mounted at /dev/shm; "" = there is none of its own. */
static const char *shm_of(const json_t *pod)
{
        json_t *spec = json_object_get(pod, "spec"), *volume, *mount;
        json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
        size_t i, k;

        json_array_foreach(json_object_get(container, "volumeMounts"), k, mount)
        {
                json_array_foreach(json_object_get(spec, "volumes"), i, volume)
                {
                        if (strcmp(at(mount, "mountPath"), "/dev/shm") == 0 &&
                            strcmp(at(volume, "name"), at(mount, "name")) == 0 &&
                            strcmp(at(volume, "emptyDir.medium"), "Memory") == 0)
                                return at(volume, "emptyDir.sizeLimit");
                }
        }
        return "";
}

/* A job of two chips, planned, and what its pods are made from. */
struct planned {
        struct ledger *ledger;
        struct job job;
        struct job_state plan;
        struct job_pods_options options;
        struct job_pods_owner owner;
        struct tls_keys made;
        char *keys;
};

static void plan_job(struct planned *p)
{
        struct open_groups_claim claim;
        struct err err = { 0 };

        *p = (struct planned){
                .ledger = job_fixture_cluster(),
                .job = job_fixture_parse(
                        "  workers: [{model: H100, chips: 2}]\n  programs: {cuda: {image: img, command: "
                        "[/opt/t, -v]}}\n"
                        "  data: {path: /data, claim: pictures}\n  checkpoint: {path: /ckpt, claim: kept}\n"),
                .options = { .launcher_image = "us", .scheduler_name = "remuda", .grace_sec = 30 },
                .owner = { .namespace_ = "ns", .name = "j", .uid = "u-1" },
                .made = { .ca = (char *) "CA",
                          .pairs = { { (char *) "MANAGER", (char *) "MANAGER KEY" },
                                     { (char *) "GROUP", (char *) "GROUP KEY" } } },
                .keys = job_keys_write(&(struct job_keys){ .secret = "j-1", .ca = (char *) "CA" })
        };
        claim = job_fixture_claim(p->ledger, &p->job);
        assert_int_equal(job_plan(&claim, &p->plan, &err), 0);
        assert_int_equal(job_pods_check(&p->job, &p->plan, &p->options, &err), 0);
}

static json_t *group_of(const struct planned *p)
{
        return job_pods_group(&p->job, &p->plan, &p->plan.groups[0], &p->owner, &p->options, p->keys);
}

static void free_planned(struct planned *p)
{
        free(p->keys);
        job_state_free(&p->plan);
        job_free(&p->job);
        ledger_life_free(p->ledger);
}

static void pods_say_what_the_plan_says(void **state)
{
        struct planned p;
        struct err err = { 0 };
        json_t *pod;

        (void) state;
        plan_job(&p);
        pod = group_of(&p);
        assert_string_equal(at(pod, "metadata.name"), "j-w0-0");
        assert_string_equal(
                json_string_value(json_object_get(json_object_get(json_object_get(pod, "metadata"), "labels"),
                                                  "remuda.dev/job")),
                "j");
        assert_string_equal(at(pod, "metadata.ownerReferences.0.uid"), "u-1");
        assert_string_equal(at(pod, "spec.containers.0.image"), "img");
        assert_string_equal(at(pod, "spec.schedulerName"), "remuda");
        assert_string_equal(at(pod, "spec.hostname"), "w0-0");
        json_decref(pod);
        p.job.programs[0].image[0] = '\0';
        assert_int_equal(job_pods_check(&p.job, &p.plan, &p.options, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "spec.programs.cuda.image: missing"));
        free_planned(&p);
}

/* What the manager cannot see by the figures of the groups alone. */
static void the_manager_is_told_how_shares_are_cut(void **state)
{
        static const struct {
                int shards, strategy;
                double samples_per_s, speed; /* speed: 0 = any */
                const char *says;
        } worlds[] = {
                { JOB_SHARDS_WEIGHTED, JOB_STRATEGY_ALLREDUCE, 0, 0, "weighted" },
                { JOB_SHARDS_EQUAL, JOB_STRATEGY_ALLREDUCE, 0, 0, "equal" },
                { JOB_SHARDS_WEIGHTED, JOB_STRATEGY_SPLIT, 0, 0, "equal" },
                { JOB_SHARDS_WEIGHTED, JOB_STRATEGY_ALLREDUCE, 1234, 1234, "weighted" },
        };
        struct planned p;

        (void) state;
        plan_job(&p);
        for (size_t i = 0; i < ARRAY_SIZE(worlds); i++) {
                json_t *world;

                p.job.shards = worlds[i].shards;
                p.job.strategy = worlds[i].strategy;
                p.plan.groups[0].samples_per_s = worlds[i].samples_per_s;
                world = manager_plan(&p.job, &p.plan, "status");
                assert_string_equal(at(world, "groups.0.name"), "w0-0");
                assert_string_equal(at(world, "args.0"), "--data");
                assert_string_equal(at(world, "shards"), worlds[i].says);
                assert_true(
                        worlds[i].speed == 0 ||
                        json_number_value(json_object_get(json_array_get(json_object_get(world, "groups"), 0),
                                                          "speed")) == worlds[i].speed);
                json_decref(world);
        }
        free_planned(&p);
}

static void a_secret_has_what_pods_may_not_show(void **state)
{
        struct planned p;
        json_t *secret, *data;

        (void) state;
        plan_job(&p);
        secret = job_pods_secret(&p.job, &p.owner, &p.options, "j-1",
                                 &(struct job_pods_secrets){ .token = "0123456789abcdef", .keys = &p.made });
        data = json_object_get(secret, "stringData");
        assert_string_equal(at(secret, "metadata.name"), "j-1");
        assert_string_equal(at(secret, "stringData.token"), "0123456789abcdef");
        assert_non_null(strstr(json_string_value(json_object_get(data, "programs.yaml")), "/opt/t"));
        assert_non_null(strstr(json_string_value(json_object_get(data, "programs.yaml")),
                               "\"inherit\": true")); /* its image's variables are its own */
        assert_string_equal(json_string_value(json_object_get(data, "group.key")), "GROUP KEY");
        json_decref(secret);
        free_planned(&p);
}

static void a_pod_has_its_own_part_of_the_keys(void **state)
{
        struct planned p;
        json_t *pod;

        (void) state;
        plan_job(&p);
        pod = group_of(&p);
        assert_true(mounts(pod, "group.key") && !mounts(pod, "manager.key"));
        assert_string_equal(json_string_value(json_object_get(
                                    json_object_get(json_object_get(pod, "metadata"), "annotations"),
                                    JOB_ANNOTATION_KEYS)),
                            p.keys); /* which names the Secret, and not its key */
        assert_true(has_words(pod, "--tls-cert /etc/remuda-job/tls.crt"));
        assert_true(has_words(pod, "--tls-name manager"));
        json_decref(pod);
        (void) strcpy(p.job.tls.secret, "own.keys");
        (void) strcpy(p.job.tls.group_secret, "group.keys");
        (void) strcpy(p.job.tls.server_name, "train.example");
        pod = group_of(&p);
        assert_true(has_words(pod, "--tls-cert /etc/remuda-tls/tls.crt --tls-key /etc/remuda-tls/tls.key "
                                   "--tls-ca /etc/remuda-tls/ca.crt --tls-name train.example"));
        assert_true(mounts(pod, "group.keys") && !mounts(pod, "own.keys") && mounts(pod, "j-1"));
        assert_false(has_words(pod, "--tls-status"));
        json_decref(pod);
        pod = job_pods_manager(&p.job, &p.plan, &p.owner, &p.options, p.keys, "status");
        assert_true(has_words(
                pod, "--tls-name train.example --tls-group-name group --tls-status /etc/remuda-job"));
        assert_true(mounts(pod, "own.keys") && !mounts(pod, "group.keys") && mounts(pod, "j-1"));
        assert_true(mounts(pod, "manager.key") && !mounts(pod, "group.key"));
        json_decref(pod);
        free_planned(&p);
}

/* Manager and group log as the controller that made them does. */
static void launchers_log_as_they_are_told(void **state)
{
        struct planned p;
        json_t *group, *manager;

        (void) state;
        plan_job(&p);
        p.options.log_format = "json";
        p.options.log_level = "warning";
        group = group_of(&p);
        manager = job_pods_manager(&p.job, &p.plan, &p.owner, &p.options, p.keys, "status");
        assert_true(has_words(group, "--log-format json --log-level warning "));
        assert_true(has_words(manager, "--log-format json --log-level warning "));
        json_decref(group);
        json_decref(manager);
        free_planned(&p);
}

/* clang-format off */
#define TABLE(RUNTIME, PATH) "{\"programs\":{\"" RUNTIME "\":{\"path\":\"" PATH "\",\"args\":[\"-q\"],\"sha256\":\"" HASH "\"}}}"
#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
static const struct {
        const char *what, *programs, *image, *table; /* of the job; of all jobs: NULL = there is none */
        const char *says;   /* why there are no pods; NULL = there are */
        const char *secret, *not_in_it; /* what the program table in its Secret has; NULL = whatever */
} programs[] = {
        { "nobody names an image",       "{}", NULL, TABLE("cuda", "/all"), "spec.programs.cuda.image: missing", NULL, NULL },
        { "nobody names a program",      "{}", "all", NULL, "spec.programs.cuda.command: missing", NULL, NULL },
        { "the table has another one",   "{}", "all", TABLE("cpu", "/all"), "has no row 'cuda'", NULL, NULL },
        { "the table has it",            "{}", "all", TABLE("cuda", "/all"), NULL, "\"path\": \"/all\"", NULL },
        { "an image of its own",         "{cuda: {image: own}}", NULL, TABLE("cuda", "/all"), NULL, HASH, NULL },
        { "an image alone will not do",  "{cuda: {image: own}}", NULL, NULL, "spec.programs.cuda.command: missing", NULL, NULL },
        { "a command of its own",        "{cuda: {command: [/own, -v]}}", "all", TABLE("cuda", "/all"), NULL, "\"path\": \"/own\"", HASH },
        { "and not the table's",         "{cuda: {command: [/own, -v]}}", "all", TABLE("cuda", "/all"), NULL, "\"-v\"", "-q" },
        { "of another runtime",          "{cpu: {command: [/own]}}", "all", TABLE("cuda", "/all"), NULL, "/own", NULL },
        { "beside the table's",          "{cpu: {image: own}}", "all", TABLE("cuda", "/all"), NULL, "/all", "cpu" },
        { "a command that is no path",   "{cuda: {command: [own]}}", "all", TABLE("cuda", "/all"), "'own' is not an absolute path", NULL, NULL },
};
/* clang-format on */

static void a_program_is_the_jobs_own_or_everybodys(void **state)
{
        static const struct tls_keys keys = { .ca = (char *) "CA",
                                              .pairs = { { (char *) "M", (char *) "K" },
                                                         { (char *) "G", (char *) "K" } } };
        const struct job_pods_secrets secrets = { .token = "0123456789abcdef", .keys = &keys };
        const struct job_pods_owner owner = { .namespace_ = "ns", .name = "j", .uid = "u-1" };
        struct ledger *l = job_fixture_cluster();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                struct program_table table = { 0 };
                struct job_pods_options options = { .launcher_image = "us", .job_image = programs[i].image };
                struct job_state plan = { 0 };
                struct open_groups_claim claim;
                struct err err = { 0 };
                struct job job;
                char spec[300];
                json_t *secret;
                const char *text;
                int r;

                (void) text_format(spec, sizeof(spec),
                                   "  workers: [{model: H100, chips: 2}]\n  programs: %s\n",
                                   programs[i].programs);
                job = job_fixture_parse(spec);
                claim = job_fixture_claim(l, &job);
                if (programs[i].table != NULL) {
                        json_t *value = json_loads(programs[i].table, 0, NULL);

                        assert_int_equal(program_table_decode(value, &table, &err), 0);
                        options.programs = &table;
                        json_decref(value);
                }
                assert_int_equal(job_plan(&claim, &plan, &err), 0);
                r = job_pods_check(&job, &plan, &options, &err);
                if (programs[i].says != NULL ? r != -EINVAL || strstr(err.msg, programs[i].says) == NULL
                                             : r != 0)
                        fail_msg("%s: %s", programs[i].what, err.msg);
                secret = job_pods_secret(&job, &owner, &options, "j-1", &secrets);
                text = json_string_value(
                        json_object_get(json_object_get(secret, "stringData"), "programs.yaml"));
                if ((programs[i].secret != NULL && strstr(text, programs[i].secret) == NULL) ||
                    (programs[i].not_in_it != NULL && strstr(text, programs[i].not_in_it) != NULL))
                        fail_msg("%s: %s", programs[i].what, text);
                json_decref(secret);
                program_table_free(&table);
                job_state_free(&plan);
                job_free(&job);
        }
        ledger_life_free(l);
}

static const char *annotation(json_t *pod, const char *name)
{
        const char *text = json_string_value(
                json_object_get(json_object_get(json_object_get(pod, "metadata"), "annotations"), name));

        return text == NULL ? "" : text;
}

#define CONTAINER "spec.containers.0."

static void a_template_stands_in_its_groups_pods(void **state)
{
        struct planned p;
        struct err err = { 0 };
        json_t *pod, *limits;

        (void) state;
        plan_job(&p);
        pod = group_of(&p);
        assert_string_equal(at(pod, CONTAINER "resources.requests.cpu"), "100m");
        assert_string_equal(at(pod, CONTAINER "resources.requests.memory"), "64Mi");
        assert_string_equal(at(pod, "spec.initContainers.0.resources.requests.cpu"), "100m");
        assert_string_equal(shm_of(pod), "1Gi");
        json_decref(pod);
        job_free(&p.job);
        p.job = job_fixture_parse(
                "  workers: [{model: H100, chips: 2, template: {env: [{name: A, value: b}], shmSize: 8Gi, "
                "resources: {requests: {ephemeral-storage: 1Gi, memory: 2Gi}, limits: {cpu: 4, memory: 3Gi, "
                "rdma/hca: 1}}}}]\n  programs: {cuda: {image: img, command: [/opt/t]}}\n");
        assert_int_equal(job_pods_check(&p.job, &p.plan, &p.options, &err), 0);
        pod = group_of(&p);
        limits = json_object_get(
                json_object_get(
                        json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0),
                        "resources"),
                "limits");
        assert_string_equal(at(pod, CONTAINER "env.2.name"), "A");
        assert_string_equal(at(pod, CONTAINER "env.2.value"), "b");
        assert_string_equal(at(pod, CONTAINER "resources.requests.cpu"), ""); /* its limit is its request */
        assert_string_equal(at(pod, CONTAINER "resources.requests.memory"), "2Gi");
        assert_string_equal(at(pod, CONTAINER "resources.requests.ephemeral-storage"), "1Gi");
        assert_string_equal(at(limits, "cpu"), "4");
        assert_string_equal(at(limits, "memory"), "3Gi");
        assert_string_equal(at(limits, "rdma/hca"), "1");
        assert_string_equal(json_string_value(json_object_get(limits, "nvidia.com/gpu")), "2");
        assert_string_equal(shm_of(pod), "8Gi");
        json_decref(pod);
        pod = job_pods_manager(&p.job, &p.plan, &p.owner, &p.options, p.keys, "status");
        assert_string_equal(at(pod, CONTAINER "resources.requests.memory"), "64Mi"); /* it is no worker */
        assert_string_equal(at(pod, CONTAINER "env.1.name"), "");
        json_decref(pod);
        (void) strcpy(p.plan.groups[0].resource, "rdma/hca"); /* a cluster that calls its chips so */
        assert_int_equal(job_pods_check(&p.job, &p.plan, &p.options, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "'rdma/hca' are chips"));
        free_planned(&p);
}

static void pods_pull_images_by_the_clusters_and_the_jobs_secrets(void **state)
{
        static const char *const everybodys[] = { "all", "both" };
        struct planned p;
        json_t *pods[2];

        (void) state;
        plan_job(&p);
        p.options.pull_secrets = everybodys;
        p.options.pull_secret_count = ARRAY_SIZE(everybodys);
        job_free(&p.job);
        p.job = job_fixture_parse(
                "  workers: [{model: H100, chips: 2}]\n  programs: {cuda: {image: img, command: [/opt/t]}}\n"
                "  imagePullSecrets: [{name: both}, {name: own}]\n");
        pods[0] = group_of(&p);
        pods[1] = job_pods_manager(&p.job, &p.plan, &p.owner, &p.options, p.keys, "status");
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
                assert_string_equal(at(pods[i], "spec.imagePullSecrets.0.name"), "all");
                assert_string_equal(at(pods[i], "spec.imagePullSecrets.1.name"), "both");
                assert_string_equal(at(pods[i], "spec.imagePullSecrets.2.name"), "own");
                assert_string_equal(at(pods[i], "spec.imagePullSecrets.3.name"), "");
                json_decref(pods[i]);
        }
        free_planned(&p);
}

/* Two mounts of one place would be refused by the API server. */
static void what_is_mounted_on_shared_memory_stays(void **state)
{
        struct planned p;
        json_t *pod;

        (void) state;
        plan_job(&p);
        (void) strcpy(p.job.checkpoint.path, "/dev/shm");
        pod = group_of(&p);
        assert_string_equal(shm_of(pod), "");
        json_decref(pod);
        free_planned(&p);
}

/* Servers have no share, and a program of its own gets its own arguments and no others. */
static void servers_and_own_arguments_stand_in_the_plan(void **state)
{
        static const struct job_pods_owner owner = { .namespace_ = "ns", .name = "j", .uid = "u-1" };
        static const struct job_pods_options options = { .launcher_image = "us",
                                                         .scheduler_name = "remuda",
                                                         .job_image = "all" };
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(
                "  globalBatch: 100\n  strategy: ps-ssp\n  preemptible: true\n  priorityClassName: research\n"
                "  workers: [{model: H100, chips: 4}]\n  servers: {model: A100, chips: 2}\n"
                "  args: [--fast, '2']\n  data: {path: /d}\n  checkpoint: {everySteps: 5}\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        json_t *world, *group, *server, *worker;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_true(plan.group_count == 2 && plan.groups[0].server);
        world = manager_plan(&job, &plan, "status");
        assert_string_equal(at(world, "args.0"), "--fast");
        assert_null(json_object_get(world, "resume_args")); /* which are the reference trainer's */
        assert_non_null(strstr(json_string_value(json_object_get(json_object_get(world, "environment"),
                                                                 "REMUDA_CHECKPOINT")),
                               MANAGER_PLAN_CHECKPOINT));
        group = json_array_get(json_object_get(world, "groups"), 0);
        assert_string_equal(at(group, "role"), "server");
        assert_true(json_number_value(json_object_get(group, "speed")) == 2); /* its ranks */
        assert_null(json_object_get(group, "batch"));
        group = json_array_get(json_object_get(world, "groups"), 1);
        assert_int_equal(json_integer_value(json_object_get(group, "batch")), 100);
        json_decref(world);
        plan.groups[1].model[0] = '\0'; /* a chip whose model nobody knows */
        server = job_pods_group(&job, &plan, &plan.groups[0], &owner, &options, "{}");
        worker = job_pods_group(&job, &plan, &plan.groups[1], &owner, &options, "{}");
        assert_string_equal(annotation(server, POD_ANNOTATION_MODELS), "A100");
        assert_string_equal(annotation(server, POD_ANNOTATION_SPEED_SOURCE), "");
        assert_string_equal(annotation(worker, POD_ANNOTATION_MODELS), "");
        assert_string_not_equal(annotation(worker, POD_ANNOTATION_SPEED_SOURCE), "");
        assert_string_equal(at(worker, "spec.priorityClassName"), "research");
        assert_string_equal(json_string_value(json_object_get(
                                    json_object_get(json_object_get(worker, "metadata"), "labels"),
                                    POD_LABEL_PREEMPTIBLE)),
                            "true");
        json_decref(server);
        json_decref(worker);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pods_say_what_the_plan_says),
                cmocka_unit_test(the_manager_is_told_how_shares_are_cut),
                cmocka_unit_test(a_secret_has_what_pods_may_not_show),
                cmocka_unit_test(a_pod_has_its_own_part_of_the_keys),
                cmocka_unit_test(launchers_log_as_they_are_told),
                cmocka_unit_test(a_program_is_the_jobs_own_or_everybodys),
                cmocka_unit_test(a_template_stands_in_its_groups_pods),
                cmocka_unit_test(pods_pull_images_by_the_clusters_and_the_jobs_secrets),
                cmocka_unit_test(what_is_mounted_on_shared_memory_stays),
                cmocka_unit_test(servers_and_own_arguments_stand_in_the_plan),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
