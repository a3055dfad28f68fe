/* Stages and profiles of a job: how they are read, what is refused in which words, which chip a stage takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "job/spec/job_yaml.h"

#define HEAD                                                                                                 \
        "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n"                   \
        "  workers: [{runtime: cuda, chips: 1}, {runtime: cpu, chips: 1}]\n  args: []\n"

static int parse(const char *text, struct job *job, struct err *err)
{
        return job_yaml_parse(text, strlen(text), job, err);
}

static void what_is_written_is_read(void **state)
{
        struct job job;

        (void) state;
        assert_int_equal(
                parse(HEAD "  strategy: split\n"
                           "  stages: [{layers: \"0:1\", \"on\": {runtime: cuda}}, {layers: \"2:2\"}]\n"
                           "  profile: {samples: 8, layers: [{name: a, ms: {cuda: 1.5, cpu: 9}}, {},\n"
                           "    {memory_bytes: 10, activation_bytes: 4, held_bytes: 6, multiply_adds: 2}]}\n",
                      &job, NULL),
                0);
        assert_int_equal(job.stage_count, 2);
        assert_true(job.stages[0].first == 0 && job.stages[0].last == 1 && job.stages[1].first == 2);
        assert_string_equal(job.stages[0].on.runtime, "cuda");
        assert_string_equal(job.stages[1].on.runtime, "");
        assert_int_equal(job.profile.samples, 8);
        assert_int_equal(job.profile.layer_count, 3);
        assert_string_equal(job.profile.layers[0].name, "a");
        assert_int_equal(job.profile.layers[0].ms_count, 2);
        assert_true(job.profile.layers[2].memory_bytes == 10 && job.profile.layers[2].held_bytes == 6);
        job_free(&job);
}

static void what_cannot_be_honoured_is_refused(void **state)
{
        static const struct {
                const char *text, *said;
        } rows[] = {
                { "  stages: [{layers: \"0:1\"}]\n", "spec.stages: it is for strategy split alone" },
                { "  profile: {layers: [{}]}\n", "spec.profile: it is for strategy split alone" },
                { "  strategy: split\n  shards: equal\n  profile: {layers: [{}]}\n",
                  "spec.profile: nothing follows it where shards are equal" },
                { "  strategy: split\n  stages: [{layers: \"0:1\"}, {layers: \"1:2\"}]\n",
                  "spec.stages[1].layers: 1:2 begin before layer 2" },
                { "  strategy: split\n  stages: [{layers: \"0:3\"}]\n  profile: {layers: [{}, {}]}\n",
                  "spec.stages[0].layers: 0:3, the model has 2 layers; give a last layer up to 1" },
                { "  strategy: split\n  stages: [{layers: \"0:0\"}, {layers: \"1:1\"}, {layers: \"2:2\"}]\n",
                  "spec.stages: 3 for 2 chips" },
                { "  replicas: 2\n",
                  "spec.replicas: it is for strategy split alone, and strategy is allreduce" },
                { "  strategy: split\n  shards: equal\n  replicas: auto\n",
                  "spec.replicas: nothing follows it" },
                { "  strategy: split\n  replicas: 3\n",
                  "spec.replicas: 3 pipelines for 2 chips and 4 microbatches" },
                { "  strategy: split\n  microbatches: 1\n  replicas: 2\n",
                  "spec.replicas: 2 pipelines for 2 chips and 1 microbatches" },
                { "  strategy: split\n  replicas: some\n",
                  "spec.replicas: \"some\" is not a whole number in 1..256; give auto, or a number" },
                { "  strategy: split\n  stages: [{layers: \"3:1\"}]\n",
                  "spec.stages[0].layers: '3:1' end before" },
                { "  strategy: split\n  stages: [{layers: 3}]\n",
                  "spec.stages[0].layers: are no layers; give" },
                { "  strategy: split\n  stages: [{\"on\": {runtime: cpu}}]\n",
                  "spec.stages[0].layers: missing" },
                { "  strategy: split\n  stages: [{layers: \"0:1\", \"on\": {chip: x}}]\n",
                  "spec.stages[0].on.chip" },
                { "  profile: {configMapKeyRef: {name: m, key: k}}\n",
                  "spec.profile: it is for strategy split alone" },
                { "  strategy: split\n  profile: {}\n", "list the model's layers, or give configMapKeyRef" },
                { "  strategy: split\n  profile: {configMapKeyRef: {name: m}}\n",
                  "spec.profile.configMapKeyRef.key: missing" },
                { "  strategy: split\n  profile: {configMapKeyRef: {name: M_, key: k}}\n",
                  "is not the name of a ConfigMap" },
                { "  strategy: split\n  profile: {configMapKeyRef: {name: m, key: a/b}}\n",
                  "is no key of a ConfigMap" },
                { "  strategy: split\n  profile: {layers: [{}], configMapKeyRef: {name: m, key: k}}\n",
                  "has layers and configMapKeyRef" },
                { "  strategy: split\n  profile: {layers: [{memory: 1}]}\n",
                  "spec.profile.layers[0].memory" },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char text[1024];
                struct err err = { 0 };
                struct job job;

                (void) snprintf(text, sizeof(text), HEAD "%s", rows[i].text);
                assert_int_equal(parse(text, &job, &err), -EINVAL);
                if (strstr(err.msg, rows[i].said) == NULL)
                        fail_msg("want '%s', got '%s'", rows[i].said, err.msg);
                job_free(&job);
        }
}

static void a_stage_takes_what_every_selector_matches(void **state)
{
        const struct job_split_chips chip = {
                .vendor = "nvidia", .runtime = "cuda", .model = "A100", .group = "g-0"
        };
        struct job_split_stage stage = { 0 };

        (void) state;
        assert_true(job_split_takes(&stage, &chip));
        strcpy(stage.on.model, "V100|A100");
        strcpy(stage.on.runtime, "cuda");
        assert_true(job_split_takes(&stage, &chip));
        strcpy(stage.on.group, "g-1");
        assert_false(job_split_takes(&stage, &chip));
}

/* The files of `remuda plan split` are profiles. */
static void a_file_of_the_planner_is_a_profile(void **state)
{
        json_t *json = json_pack("{s:[{s:s, s:{s:f}, s:i}], s:[{s:s}], s:s, s:i}", "layers", "name", "a",
                                 "ms", "gpu", 1.5, "rows", 4, "devices", "type", "gpu", "schedule", "1f1b",
                                 "microbatches", 8);
        struct job_split_profile profile;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(job_split_decode(json, &profile, &err), 0);
        assert_int_equal(profile.layer_count, 1);
        assert_int_equal(profile.samples, 1);
        job_split_profile_free(&profile);
        (void) json_object_set_new(json, "layer", json_array());
        assert_int_equal(job_split_decode(json, &profile, &err), -EBADMSG);
        assert_int_equal(profile.layer_count, 0);
        json_decref(json);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(what_cannot_be_honoured_is_refused),
                cmocka_unit_test(a_stage_takes_what_every_selector_matches),
                cmocka_unit_test(a_file_of_the_planner_is_a_profile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
