/* TrainingJobs that are understood, and those that are refused with field and remedy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/spec/job_arguments.h"
#include "job/spec/job_yaml.h"

/* A job in the words of docs/reference/trainingjob.md. */
static const char full[] =
        "apiVersion: remuda.dev/v1alpha1\n"
        "kind: TrainingJob\n"
        "metadata: {name: fashion, labels: {team: a}}\n"
        "spec:\n"
        "  urgency: emergency                 # regular | emergency\n"
        "  preemptible: false\n"
        "  placement: largest-free\n"
        "  strategy: ps-ssp\n"
        "  staleness: 7\n"
        "  model: cnn\n"
        "  seed: 9\n"
        "  learningRate: 0.05\n"
        "  globalBatch: 256\n"
        "  epochs: 3\n"
        "  shards: equal\n"
        "  segments: none\n"
        "  neighbourExchange: 0.25\n"
        "  workers:\n"
        "  - {runtime: cuda, chips: 4, minChips: 2, deviceClass: remuda-cuda, template: {env: [{name: A, "
        "value: b}], "
        "resources: {requests: {cpu: 500m}, limits: {cpu: 2, rdma/hca: 1}}, shmSize: 8Gi}}\n"
        "  - {vendor: cpu, model: A|B, group: cpu-0, chips: 1}\n"
        "  servers: {runtime: cpu, chips: 2}\n"
        "  programs:\n"
        "    cuda: {image: registry.example/train-cuda:1, command: [/opt/train, -v]}\n"
        "  data: {path: /data, claim: pictures, format: raw, order: round-robin, "
        "distribute: manager, pollSeconds: 5}\n"
        "  checkpoint: {path: /ckpt, claim: kept, everySteps: 10}\n"
        "  restart: {max: 5, migrate: false, resplit: false, hangSeconds: 9}\n"
        "  priority: -3\n"
        "  suspend: true\n"
        "  disruption: never\n"
        "  ttlSecondsAfterFinished: 60\n"
        "  dependsOn: [other-job]\n"
        "status: {phase: Running, anything: [1]}\n";

static void every_field_is_read(void **state)
{
        struct err err = { 0 };
        struct job job;

        (void) state;
        if (job_yaml_parse(full, strlen(full), &job, &err) < 0)
                fail_msg("%s", err.msg);
        assert_string_equal(job.name, "fashion");
        assert_int_equal(job.urgency, JOB_URGENCY_EMERGENCY);
        assert_int_equal(job.placement, JOB_PLACEMENT_LARGEST_FREE);
        assert_int_equal(job.strategy, JOB_STRATEGY_PS_SSP);
        assert_int_equal(job.staleness, 7);
        assert_string_equal(job.model, "cnn");
        assert_int_equal(job.seed, 9);
        assert_true(job.learning_rate == 0.05);
        assert_int_equal(job.shards, JOB_SHARDS_EQUAL);
        assert_int_equal(job.segments, JOB_SEGMENTS_NONE);
        assert_true(job.neighbour_exchange == 0.25);
        assert_int_equal(job.worker_count, 2);
        assert_int_equal(job.workers[0].min_chips, 2);
        assert_true(job.workers[0].template.given && !job.workers[1].template.given);
        assert_string_equal(job.workers[0].template.environment[0].value, "b");
        assert_string_equal(job.workers[0].template.requests[0].quantity, "500m");
        assert_string_equal(
                job_template_find(job.workers[0].template.limits, job.workers[0].template.limit_count, "cpu")
                        ->quantity,
                "2");
        assert_string_equal(job.workers[0].template.shm_size, "8Gi");
        assert_int_equal(job.workers[1].min_chips, 1);
        assert_string_equal(job.workers[1].model, "A|B");
        assert_int_equal(job_worker_chips(&job), 5);
        assert_int_equal(job_server_chips(&job), 2);
        assert_string_equal(job.programs[0].command[1], "-v");
        assert_int_equal(job.data.format, JOB_FORMAT_RAW);
        assert_string_equal(job.data.claim, "pictures");
        assert_int_equal(job.data.order, JOB_ORDER_ROUND_ROBIN);
        assert_int_equal(job.data.distribute, JOB_DATA_MANAGER);
        assert_int_equal(job.data.poll_seconds, 5);
        assert_int_equal(job.checkpoint.every_steps, 10);
        assert_string_equal(job.checkpoint.claim, "kept");
        assert_int_equal(job_restart_max(&job), 5);
        assert_false(job.restart.migrate || job.restart.resplit);
        assert_int_equal(job.priority, -3);
        assert_int_equal(job.disruption, JOB_EVICTION_NEVER);
        assert_true(job.suspend && job.has_ttl);
        assert_int_equal(job.ttl_seconds, 60);
        assert_string_equal(job.depends_on[0], "other-job");
        job_free(&job);
}

#define HEAD             "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
#define TEMPLATE(fields) HEAD "  workers: [{runtime: cpu, chips: 1, template: {" fields "}}]\n"
#define LEAST            HEAD "  workers: [{runtime: cpu, chips: 2}]\n"
#define META(FIELDS)                                                                                         \
        "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, " FIELDS                    \
        "}\nspec: {workers: [{runtime: cpu, chips: 2}]}\n"

static void what_is_left_out_has_a_default(void **state)
{
        struct err err = { 0 };
        struct job job;

        (void) state;
        if (job_yaml_parse(LEAST, strlen(LEAST), &job, &err) < 0)
                fail_msg("%s", err.msg);
        assert_string_equal(job.model, "mlp");
        assert_int_equal(job.seed, 1);
        assert_int_equal(job.global_batch, 256);
        assert_int_equal(job.epochs, 1);
        assert_int_equal(job.shards, JOB_SHARDS_WEIGHTED);
        assert_int_equal(job.segments, JOB_SEGMENTS_AUTO);
        assert_int_equal(job_restart_max(&job), 0);
        assert_int_equal(job_server_chips(&job), 0);
        assert_false(job.has_args || job.suspend || job.has_ttl);
        job_free(&job);
}

/* clang-format off */
static const struct {
        const char *text, *says;
} refusals[] = {
        { "",                                                               "apiVersion: missing" },
        { "- a\n",                                                          "a TrainingJob is needed" },
        { "apiVersion: v1\nkind: TrainingJob\n",                            "apiVersion: \"v1\" is not 'remuda.dev/v1alpha1'" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: Pod\n",                   "kind: \"Pod\" is not 'TrainingJob'" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nspec: {}\n", "metadata.name: missing" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\n", "spec: missing" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: ../../etc}\nspec: {workers: [{runtime: cpu, chips: 1}]}\n", "metadata.name: '../../etc' is not a name" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: --help}\nspec: {workers: [{runtime: cpu, chips: 1}]}\n", "metadata.name: '--help' is not a name" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: 7}\nspec: {}\n", "metadata.name: 7 is not text" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec: {}\nextra: 1\n", "extra: no such field" },
        { "apiVersion: 7\nkind: TrainingJob\n",                 "apiVersion: 7 is not 'remuda.dev/v1alpha1'" },
        { "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: j\nspec: {}\n", "metadata: a mapping is needed, such as {name: fashion}" },
        { META("labels: []"),                                   "metadata.labels: a mapping is needed, such as {team: vision}" },
        { META("labels: {team: 7}"),                            "metadata.labels.team: a string is needed; put it in quotes" },
        { META("labels: {team: a b}"),                          "metadata.labels.team: 'a b' is not a label's value" },
        { META("annotations: {team: 7}"),                       "metadata.annotations.team: a string is needed" },
        { META("annotations: {-a: x}"),                         "metadata.annotations: '-a' is not the name of a label" },
        { HEAD "  epochs: 3\n",                                 "spec.workers: missing" },
        { HEAD "  workers: [{runtime: cpu, chips: 40000}, {runtime: cpu, chips: 40000}]\n", "spec.workers: 80000 chips in all; at most 65536 are allowed" },
        { HEAD "  workers: [{vendor: -x, chips: 1}]\n",         "spec.workers[0].vendor: '-x' is not the name of a vendor" },
        { HEAD "  workers: [{vendor: A_B, chips: 1}]\n",        "spec.workers[0].vendor: 'A_B' is not the name of a vendor" },
        { LEAST "  programs: {cpu: {image: -x}}\n",             "spec.programs.cpu.image: '-x' is not the name of an image" },
        { LEAST "  programs: {cpu: {image: a b}}\n",            "spec.programs.cpu.image: 'a b' is not the name of an image" },
        { LEAST "  programs: {abcdefghijklmnop: {image: x}}\n", "at most 15 small letters" },
        { LEAST "  programs: {A: {image: x}}\n",                "not the name of a runtime" },
        { LEAST "  checkpoint: {path: -c}\n",                   "spec.checkpoint.path: '-c' looks like an option; write ./-c" },
        { HEAD "  workers: []\n",                               "spec.workers: [] is not understood" },
        { HEAD "  workers: {runtime: cpu}\n",                   "spec.workers: {\"runtime\":\"cpu\"} is not understood" },
        { HEAD "  workers: [{chips: 1}]\n",                     "spec.workers[0]: says nothing of the chips" },
        { HEAD "  workers: [{runtime: cpu}]\n",                 "spec.workers[0].chips: missing" },
        { HEAD "  workers: [{runtime: cpu, chips: 0}]\n",       "spec.workers[0].chips: 0 is not a whole number in 1..65536" },
        { HEAD "  workers: [{runtime: cpu, chips: two}]\n",     "spec.workers[0].chips: \"two\" is not a whole number" },
        { HEAD "  workers: [{runtime: cpu, chips: 1, minChips: 2}]\n", "spec.workers[0].minChips: 2 is more than chips, 1" },
        { HEAD "  workers: [{runtime: cuda, chips: 1, deviceClass: A_B}]\n", "spec.workers[0].deviceClass: 'A_B' is not the name of a DeviceClass" },
        { HEAD "  workers: [{runtime: cuda, chips: 1, deviceClass: remuda-cann}]\n", "spec.workers[0].deviceClass: 'remuda-cann' are no chips of cuda; name the class of those that the entry asks for, such as remuda-cuda" },
        { HEAD "  workers: [{vendor: nvidia, chips: 1, deviceClass: remuda-huawei}]\n", "spec.workers[0].deviceClass: 'remuda-huawei' are no chips of nvidia" },
        { HEAD "  workers: [{runtime: ../cpu, chips: 1}]\n",    "spec.workers[0].runtime: '../cpu' is not the name" },
        { HEAD "  workers: [{runtime: --cpu, chips: 1}]\n",     "spec.workers[0].runtime: '--cpu' is not the name" },
        { HEAD "  workers: [{group: a/b, chips: 1}]\n",         "spec.workers[0].group: 'a/b' is not the name" },
        { TEMPLATE("env: [{name: POD_IP, value: x}]"), "spec.workers[0].template.env[0].name: 'POD_IP' is not a variable that a template may set" },
        { TEMPLATE("env: [{name: REMUDA_X, value: x}]"), "spec.workers[0].template.env[0].name: 'REMUDA_X' is not a variable" },
        { TEMPLATE("env: [{name: 1A, value: x}]"), "spec.workers[0].template.env[0].name: '1A' is not a variable" },
        { TEMPLATE("env: [{name: A-B, value: x}]"), "spec.workers[0].template.env[0].name: 'A-B' is not a variable" },
        { TEMPLATE("env: [{name: A}, {name: B}, {name: A}]"), "spec.workers[0].template.env[2]: 'A' is listed twice; remove one" },
        { TEMPLATE("resources: {limits: {/hca: 1}}"), "limits./hca: not a resource that a template" },
        { TEMPLATE("resources: {limits: {rdma/: 1}}"), "limits.rdma/: not a resource that a template" },
        { TEMPLATE("resources: {limits: {rdma/a/b: 1}}"), "limits.rdma/a/b: not a resource that a template" },
        { TEMPLATE("resources: {limits: {'rdma/a b': 1}}"), "limits.rdma/a b: not a resource that a template" },
        { TEMPLATE("resources: {requests: {rdma/hca: 1}, limits: {rdma/hca: 1, a/b: 500m}}"), "spec.workers[0].template.resources.limits.a/b: 500m is not a whole number" },
        { TEMPLATE("resources: {limits: {cpu: '000000000000000000000000000000000000000000000000000000000000000000001'}}"), "is not understood; give quantities" },
        { TEMPLATE("env: [{value: x}]"), "spec.workers[0].template.env[0].name: missing; name the variable" },
        { TEMPLATE("env: [{name: A, value: 7}]"), "spec.workers[0].template.env[0].value: 7 is not text of 0 to 1023 bytes" },
        { TEMPLATE("env: [{name: A}, {name: A}]"), "spec.workers[0].template.env[1]: 'A' is listed twice; remove one" },
        { TEMPLATE("env: [{name: A, valueFrom: {}}]"), "spec.workers[0].template.env[0].valueFrom: no such field" },
        { TEMPLATE("resources: {limits: {nvidia.com/gpu: 1}}"), "spec.workers[0].template.resources.limits.nvidia.com/gpu: not a resource that a template may name" },
        { TEMPLATE("resources: {limits: {remuda.dev/cpu-group: 1}}"), "limits.remuda.dev/cpu-group: not a resource that a template" },
        { TEMPLATE("resources: {limits: {hugepages-2Mi: 1}}"), "limits.hugepages-2Mi: not a resource that a template" },
        { TEMPLATE("resources: {limits: {cpu: two}}"), "spec.workers[0].template.resources.limits: {\"cpu\":\"two\"} is not understood; give quantities such as {memory: 16Gi, rdma/hca: 1}, at most 16" },
        { TEMPLATE("resources: {limits: {cpu: -1}}"), "spec.workers[0].template.resources.limits: {\"cpu\":-1} is not understood; give quantities" },
        { TEMPLATE("resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}"), "spec.workers[0].template.resources.requests.cpu: 2 is more than the limit, 1500m; give at most that" },
        { TEMPLATE("resources: {requests: {rdma/hca: 1}}"), "spec.workers[0].template.resources.requests.rdma/hca: 1 is not the limit, and nobody shares it; write it in limits alone" },
        { TEMPLATE("resources: {requests: {rdma/hca: 1, cpu: 1}, limits: {cpu: 1}}"), "requests.rdma/hca: 1 is not the limit" },
        { TEMPLATE("env: [{name: A, value: x}, {name: A, value: y}, {name: B, value: z}]"), "template.env[1]: 'A' is listed twice; remove one" },
        { TEMPLATE("resources: {limits: {a/b: 500m, rdma/hca: 1}}"), "limits.a/b: 500m is not a whole number" },
        { TEMPLATE("resources: {limits: {rdma/hca: 500m}}"), "spec.workers[0].template.resources.limits.rdma/hca: 500m is not a whole number" },
        { TEMPLATE("resources: {claims: []}"), "spec.workers[0].template.resources.claims: no such field" },
        { TEMPLATE("shmSize: 0"), "spec.workers[0].template.shmSize: 0 is not text" },
        { TEMPLATE("shmSize: '0'"), "spec.workers[0].template.shmSize: '0' is not a size; such as 8Gi" },
        { TEMPLATE("shmSize: big"), "spec.workers[0].template.shmSize: 'big' is not a size" },
        { TEMPLATE("hostPID: true"), "spec.workers[0].template.hostPID: no such field" },
        { HEAD "  workers: [{runtime: cpu, chip: 1}]\n",        "spec.workers[0].chip: no such field" },
        { LEAST "  imagePullSecrets: [my-registry]\n",         "spec.imagePullSecrets[0]: \"my-registry\" is not a mapping of fields" },
        { LEAST "  imagePullSecrets: [{name: A_B}]\n",         "spec.imagePullSecrets[0].name: 'A_B' is not the name of a Secret" },
        { LEAST "  imagePullSecrets: [{}]\n",                  "spec.imagePullSecrets[0].name: missing; name the Secret" },
        { LEAST "  urgency: urgent\n",                          "spec.urgency: \"urgent\" is none of regular, emergency" },
        { LEAST "  preemptible: 1\n",                           "spec.preemptible: 1 is neither true nor false" },
        { LEAST "  preemptible: true\n  disruption: never\n", "spec.disruption: never, and preemptible is true" },
        { LEAST "  placement: best\n",                          "spec.placement: \"best\" is none of" },
        { LEAST "  strategy: gossip\n",                         "spec.strategy: \"gossip\" is none of allreduce, ps-sync" },
        { LEAST "  staleness: -1\n",                            "spec.staleness: -1 is not a whole number" },
        { LEAST "  staleness: 3\n",                             "spec.staleness: 3 is for strategy ps-ssp alone, and strategy is allreduce; leave staleness out, or write strategy: ps-ssp" },
        { LEAST "  strategy: ps-async\n  staleness: 0\n",       "spec.staleness: 0 is for strategy ps-ssp alone, and strategy is ps-async" },
        { LEAST "  strategy: split\n  staleness: 5\n",          "spec.staleness: 5 is for strategy ps-ssp alone, and strategy is split" },
        { LEAST "  microbatches: 2\n",                          "spec.microbatches: 2 is for strategy split alone, and strategy is allreduce; leave microbatches out, or write strategy: split" },
        { LEAST "  strategy: ps-ssp\n  microbatches: 8\n",      "spec.microbatches: 8 is for strategy split alone, and strategy is ps-ssp" },
        { LEAST "  data: {path: /d, preprocess: 'scale,blur'}\n", "spec.data.preprocess: step 'blur'" },
        { LEAST "  data: {path: /d, preprocess: 'tokenise:byte'}\n", "step 'tokenise' is for text" },
        { LEAST "  model: transformer\n  data: {path: /d}\n", "spec.model: 'transformer' is not mlp, cnn, resnet or text" },
        { LEAST "  seed: 1.5\n",                                "spec.seed: 1.5 is not a whole number" },
        { LEAST "  learningRate: 0\n",                          "spec.learningRate: 0 is not a number in" },
        { LEAST "  learningRate: fast\n",                       "spec.learningRate: \"fast\" is not a number" },
        { LEAST "  globalBatch: 1\n",                           "spec.globalBatch: 1 is fewer than one sample for each of the 2 chips" },
        { LEAST "  globalBatch: 256.0\n",                       "spec.globalBatch: 256.0 is not a whole number" },
        { LEAST "  epochs: 0\n",                                "spec.epochs: 0 is not a whole number in 1.." },
        { LEAST "  shards: fair\n",                             "spec.shards: \"fair\" is none of weighted, equal" },
        { LEAST "  segments: some\n",                           "spec.segments: \"some\" is not understood; give auto, none" },
        { LEAST "  segments: [3, 3]\n",                         "spec.segments[1]: 3 does not come after 3" },
        { LEAST "  segments: [3]\n  strategy: ps-sync\n",       "spec.segments: a list is for strategy allreduce alone, and strategy is ps-sync, which cuts no gradients; leave segments out" },
        { LEAST "  segments: [3]\n  strategy: split\n",         "spec.segments: a list is for strategy allreduce alone, and strategy is split" },
        { LEAST "  groups: some\n",                             "spec.groups: \"some\" is not understood; give auto, none" },
        { LEAST "  groups: [0]\n",                              "spec.groups: [0] is not understood; give auto, none, or a list of the workers of each group" },
        { HEAD "  workers: [{group: gpu-0, chips: 8}]\n  groups: [4, 3]\n", "spec.groups: add up to 7, the workers are 8" },
        { HEAD "  workers: [{group: gpu-0, chips: 8, minChips: 4}]\n  groups: [4, 4]\n", "spec.groups: a list is of all workers, and with minChips there may be 4 or 8" },
        { HEAD "  workers: [{group: gpu-0, chips: 2}]\n  strategy: split\n  groups: [1, 1]\n", "spec.groups: are of workers that hold the whole model" },
        { HEAD "  workers: [{group: gpu-0, chips: 2}]\n  segments: [3, 7]\n  groups: [1, 1]\n", "spec.groups: two levels send pieces of their own" },
        { LEAST "  minNetworkMbps: fast\n",                     "spec.minNetworkMbps" },
        { LEAST "  neighbourExchange: 1.5\n",                   "spec.neighbourExchange: 1.5 is not a number in 0..1" },
        { LEAST "  servers: []\n",                              "spec.servers: [] is not a mapping" },
        { LEAST "  programs: [a]\n",                            "spec.programs: [\"a\"] is not understood" },
        { LEAST "  programs: {cpu: {path: /x}}\n",              "spec.programs.cpu.path: no such field" },
        { LEAST "  args: --fast\n",                             "spec.args: \"--fast\" is not understood" },
        { LEAST "  data: /data\n",                              "spec.data: \"/data\" is not a mapping" },
        { LEAST "  data: {format: idx}\n",                      "spec.data.path: missing" },
        { LEAST "  data: {path: -rf}\n",                        "spec.data.path: '-rf' looks like an option" },
        { LEAST "  data: {path: \"/a\\nb\"}\n",                 "spec.data.path: \"/a\\nb\" is not text" },
        { LEAST "  data: {path: /d, format: csv}\n",            "spec.data.format: \"csv\" is none of idx, raw, text" },
        { LEAST "  data: {path: /d, distribute: torrent}\n",    "spec.data.distribute" },
        { LEAST "  data: {path: /d, order: random}\n",          "spec.data.order" },
        { LEAST "  data: {path: /d, pollSeconds: -5}\n",        "spec.data.pollSeconds" },
        { LEAST "  data: {path: /d, claim: ../x}\n",            "spec.data.claim: '../x' is not the name of a PersistentVolumeClaim" },
        { LEAST "  data: {path: d, claim: x}\n",                "spec.data.claim: a claim is mounted at spec.data.path" },
        { LEAST "  checkpoint: {path: /c, claim: -x}\n",        "spec.checkpoint.claim: '-x' is not the name" },
        { LEAST "  tls: {}\n",                                  "spec.tls.secretName: missing" },
        { LEAST "  tls: {secretName: ../x}\n",                  "spec.tls.secretName: '../x' is not the name of a Secret" },
        { LEAST "  tls: {secretName: a..b}\n",                  "spec.tls.secretName: 'a..b' is not the name of a Secret" },
        { LEAST "  tls: {secretName: a.-b}\n",                  "spec.tls.secretName: 'a.-b' is not the name of a Secret" },
        { LEAST "  tls: {secretName: a-.b}\n",                  "spec.tls.secretName: 'a-.b' is not the name of a Secret" },
        { LEAST "  tls: {secretName: a}\n",                     "spec.tls.groupSecretName: missing" },
        { LEAST "  tls: {secretName: a, groupSecretName: b, serverName: A}\n", "spec.tls.serverName: 'A' is not a DNS name" },
        { LEAST "  checkpoint: {claim: x}\n",                   "spec.checkpoint.claim: a claim is mounted at spec.checkpoint.path" },
        { LEAST "  checkpoint: {everySteps: 0}\n",              "spec.checkpoint.everySteps: 0 is not" },
        { LEAST "  checkpoint: {path: ''}\n",                   "spec.checkpoint.path: \"\" is not text of 1 to" },
        { LEAST "  restart: 3\n",                               "spec.restart: 3 is not a mapping" },
        { LEAST "  restart: {max: -1}\n",                       "spec.restart.max: -1 is not a whole number in 0..1000" },
        { LEAST "  restart: {migrate: maybe}\n",                "spec.restart.migrate: \"maybe\" is neither" },
        { LEAST "  priority: high\n",                           "spec.priority: \"high\" is not a whole number" },
        { LEAST "  dependsOn: [j]\n",                           "spec.dependsOn[0]: 'j' is this job itself" },
        { LEAST "  dependsOn: [a, a]\n",                        "spec.dependsOn[1]: 'a' is listed twice" },
        { LEAST "  dependsOn: [../a]\n",                        "spec.dependsOn[0]: '../a' is not the name of a job" },
        { LEAST "  dependsOn: other\n",                         "spec.dependsOn: \"other\" is not understood" },
        { LEAST "  epoch: 3\n",                                 "spec.epoch: no such field; there are urgency" },
};
/* clang-format on */

static void every_wrong_field_is_named(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                struct err err = { 0 };
                struct job job;
                int r = job_yaml_parse(refusals[i].text, strlen(refusals[i].text), &job, &err);

                if (r != -EINVAL || err.code != r || strstr(err.msg, refusals[i].says) == NULL)
                        fail_msg("%s\nwant '%s'\ngot %d '%s'", refusals[i].text, refusals[i].says, r,
                                 err.msg);
        }
}

/* What looks like one of these mistakes and is none. */
static void what_may_be_is_taken(void **state)
{
        static const char *const texts[] = {
                META("labels: {team: ''}"),
                META("annotations: {team: 'a b, c'}"),
                LEAST "  strategy: split\n  globalBatch: 1\n",
                LEAST "  strategy: split\n  microbatches: 7\n  staleness: 0\n",
                LEAST "  strategy: ps-ssp\n  microbatches: 1\n  staleness: 9\n",
                LEAST
                "  strategy: ps-async\n  microbatches: 4\n  staleness: 4\n",  /* an API server writes them */
                LEAST "  microbatches: 1\n  staleness: 0\n",                  /* it does so anyway */
                LEAST "  args: []\n  data: {path: /d, preprocess: 'mine'}\n", /* its own program reads them */
                LEAST "  dependsOn: [a, b]\n  segments: [3, 7]\n",
                HEAD "  workers: [{group: gpu-0, chips: 2}]\n  segments: none\n  groups: none\n",
                HEAD "  workers: [{group: gpu-0, chips: 8}]\n  groups: [4, 3, 1]\n  minNetworkMbps: 10000\n",
                HEAD "  workers: [{group: gpu-0, chips: 3}]\n  strategy: ps-sync\n  groups: [2, 1]\n",
                LEAST "  data: {path: /d, claim: x}\n  checkpoint: {path: /c, claim: y}\n",
        };
        struct err err = { 0 };
        struct job job;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                if (job_yaml_parse(texts[i], strlen(texts[i]), &job, &err) < 0)
                        fail_msg("%s: %s", texts[i], err.msg);
                job_free(&job);
        }
}

/* A text that long is no job; whoever wants no sentence gets the code alone. */
static void what_is_no_job_at_all_is_refused(void **state)
{
        CLEANUP(free_p) char *large = calloc(1, JOB_FILE_MAX_BYTES + 1);
        json_t *wrong = json_pack("{s:s, s:s, s:{s:s}, s:{s:i}}", "apiVersion", "remuda.dev/v1alpha1", "kind",
                                  "TrainingJob", "metadata", "name", "j", "spec", "workers", 7);
        struct err err = { 0 };
        struct job job;
        int r;

        (void) state;
        memset(large, ' ', JOB_FILE_MAX_BYTES + 1);
        assert_int_equal(job_yaml_parse(large, JOB_FILE_MAX_BYTES + 1, &job, &err), -E2BIG);
        assert_non_null(strstr(err.msg, "a job is a short text"));
        r = job_yaml_parse("a: [", 4, &job, &err);
        assert_true(r < 0 && r == err.code);
        assert_int_equal(job_yaml_decode(wrong, &job, NULL), -EINVAL);
        (void) json_object_set_new(json_object_get(wrong, "metadata"), "labels",
                                   json_pack("{s:s#}", "team", "a\0b", 3)); /* as no file can have it */
        assert_int_equal(job_yaml_decode(wrong, &job, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "metadata.labels.team: 'a' is not a label's value"));
        json_decref(wrong);
}

/* Where a job names no servers, one is enough for those who learn by them. */
static void servers_are_those_of_the_strategy(void **state)
{
        static const struct {
                const char *text;
                unsigned servers;
        } rows[] = {
                { LEAST "  strategy: ps-async\n", 1 },
                { LEAST "  strategy: ps-sync\n  servers: {runtime: cpu, chips: 3}\n", 3 },
                { LEAST "  servers: {runtime: cpu, chips: 3}\n", 0 },
        };
        struct err err = { 0 };
        struct job job;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                if (job_yaml_parse(rows[i].text, strlen(rows[i].text), &job, &err) < 0)
                        fail_msg("%s", err.msg);
                assert_int_equal(job_server_chips(&job), rows[i].servers);
                job_free(&job);
        }
}

/* One of several models, each of them whole. */
static void a_model_is_one_of_the_alternatives(void **state)
{
        static const struct {
                const char *wanted, *model;
                bool matches;
        } rows[] = {
                { "H100", "H100", true },   { "A100|H100", "H100", true }, { "H100|A100", "H100", true },
                { "H100x", "H100", false }, { "H1", "H100", false },       { "A100|H100x", "H100", false },
                { "A100|", "H100", false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (job_role_model_matches(rows[i].wanted, rows[i].model) != rows[i].matches)
                        fail_msg("%s, %s", rows[i].wanted, rows[i].model);
}

/* Shares that may change while the job runs: by speed, of data that every rank can read. */
static void some_jobs_are_shared_anew_while_they_run(void **state)
{
        static const struct {
                const char *fields;
                bool live;
        } rows[] = {
                { "", true },
                { "  strategy: ps-sync\n", true },
                { "  strategy: ps-async\n", false },
                { "  strategy: split\n", false },
                { "  shards: equal\n", false },
                { "  data: {path: /d, distribute: manager}\n", false },
                { "  neighbourExchange: 0.5\n", false },
        };
        char text[300];
        struct job job;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                (void) text_format(text, sizeof(text), "%s%s", LEAST, rows[i].fields);
                assert_int_equal(job_yaml_parse(text, strlen(text), &job, NULL), 0);
                if (job_shares_change_live(&job) != rows[i].live)
                        fail_msg("'%s'", rows[i].fields);
                job_free(&job);
        }
}

static void a_program_of_ones_own_names_its_model(void **state)
{
        static const char text[] = LEAST "  args: [--fast, '2']\n  model: my-net\n";
        struct err err = { 0 };
        struct job job;

        (void) state;
        if (job_yaml_parse(text, strlen(text), &job, &err) < 0)
                fail_msg("%s", err.msg);
        assert_true(job.has_args);
        assert_string_equal(job.args[1], "2");
        job_free(&job);
}

/* A script needs neither options nor data of the job's. */
static void a_job_without_args_and_data_names_its_model(void **state)
{
        static const char text[] = LEAST "  model: my-net\n";
        struct err err = { 0 };
        struct job job;

        (void) state;
        if (job_yaml_parse(text, strlen(text), &job, &err) < 0)
                fail_msg("%s", err.msg);
        assert_string_equal(job.model, "my-net");
        job_free(&job);
}

/* What a cluster takes: a part of a Secret's name may be longer than 63, and only a prefix is a DNS name. */
static void names_are_those_of_kubernetes(void **state)
{
        static const struct {
                const char *labels;
                bool good;
        } cases[] = {
                { "{example.com/a..b: x}", true },
                { "{a..b: x}", true },
                { "{a-b.c-d/T_1: x}", true },
                { "{a..b/c: x}", false },
                { "{Example.com/a: x}", false },
                { "{a.-b/c: x}", false },
                { "{a-.b/c: x}", false },
                { "{.a/c: x}", false },
                { "{/c: x}", false },
                { "{a./c: x}", false },
                { "{a/..: x}", false },
        };
        static const size_t lengths[] = { 64, 253, 254 };
        struct err err = { 0 };
        struct job job;
        char text[1024], name[300];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                (void) text_format(text, sizeof(text),
                                   "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, "
                                   "labels: %s}\nspec:\n  workers: [{runtime: cpu, chips: 2}]\n",
                                   cases[i].labels);
                if ((job_yaml_parse(text, strlen(text), &job, &err) == 0) != cases[i].good)
                        fail_msg("%s: %s", cases[i].labels, err.msg);
                if (cases[i].good)
                        job_free(&job);
        }
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                memset(name, 'a', lengths[i]);
                name[lengths[i]] = '\0';
                (void) text_format(text, sizeof(text), LEAST "  tls: {secretName: %s, groupSecretName: g}\n",
                                   name);
                assert_int_equal(job_yaml_parse(text, strlen(text), &job, &err) == 0, lengths[i] <= 253);
                if (lengths[i] <= 253)
                        job_free(&job);
        }
}

static void a_checkpoint_alone_allows_three_restarts(void **state)
{
        static const char text[] = LEAST "  checkpoint: {everySteps: 5}\n";
        struct err err = { 0 };
        struct job job;

        (void) state;
        assert_int_equal(job_yaml_parse(text, strlen(text), &job, &err), 0);
        assert_int_equal(job_restart_max(&job), 3);
        job_free(&job);
}

static bool has_word(const struct arguments *args, const char *word)
{
        for (size_t i = 0; i < args->count; i++)
                if (strcmp(args->list[i], word) == 0)
                        return true;
        return false;
}

/* Of both the trainer takes the steps; and not everybody who makes arguments runs the job's own commands. */
static void every_program_is_told_the_epochs(void **state)
{
        static const char *const cases[] = {
                LEAST,
                LEAST "  epochs: 7\n  programs: {cpu: {image: i, command: [t, --steps, '3']}}\n",
                LEAST "  programs: {cpu: {image: i, command: [t, --steps=3]}}\n",
        };
        const struct job_arguments what = { .checkpoint = "" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arguments args = { 0 };
                struct err err = { 0 };
                struct job job;

                if (job_yaml_parse(cases[i], strlen(cases[i]), &job, &err) < 0)
                        fail_msg("%s", err.msg);
                job_arguments_add(&job, &what, &args);
                assert_true(has_word(&args, "--epochs"));
                assert_int_equal(has_word(&args, "7"), i == 1);
                assert_true(has_word(&args, "--batch"));
                arguments_free(&args);
                job_free(&job);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_field_is_read),
                cmocka_unit_test(what_is_left_out_has_a_default),
                cmocka_unit_test(every_wrong_field_is_named),
                cmocka_unit_test(what_may_be_is_taken),
                cmocka_unit_test(what_is_no_job_at_all_is_refused),
                cmocka_unit_test(servers_are_those_of_the_strategy),
                cmocka_unit_test(a_model_is_one_of_the_alternatives),
                cmocka_unit_test(some_jobs_are_shared_anew_while_they_run),
                cmocka_unit_test(a_program_of_ones_own_names_its_model),
                cmocka_unit_test(a_job_without_args_and_data_names_its_model),
                cmocka_unit_test(names_are_those_of_kubernetes),
                cmocka_unit_test(a_checkpoint_alone_allows_three_restarts),
                cmocka_unit_test(every_program_is_told_the_epochs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
