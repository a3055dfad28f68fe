/* The trainer's options of a job: those it must have, and each that is there because the job says something.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/spec/job_arguments.h"
#include "job/spec/job_yaml.h"

#define LEAST                                                                                                \
        "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"                   \
        "  workers: [{runtime: cpu, chips: 2}]\n"

/* clang-format off */
static const struct {
        const char *what, *spec;
        struct job_arguments more;
        const char *options; /* among the others, in their order */
} rows[] = {
        { "the least", "  data: {path: /d, format: idx}\n", { .checkpoint = "" },
          "--data /d --model " },
        { "an order",  "  data: {path: /d, format: idx, order: round-robin}\n", { .checkpoint = "" },
          "--data /d --order round-robin --model " },
        { "steps",     "  data: {path: /d, format: idx, preprocess: 'flip,normalise'}\n", { .checkpoint = "" },
          " --preprocess flip,normalise --model " },
        { "a manager that gives the data", "  data: {path: /d, format: idx, distribute: manager}\n", { .checkpoint = "" },
          " --distribute manager --model " },
        { "data that grows", "  data: {path: /d, format: idx, pollSeconds: 7}\n", { .checkpoint = "" },
          " --poll 7 --model " },
        { "a rate",    "  data: {path: /d, format: idx}\n  learningRate: 0.25\n", { .checkpoint = "" },
          " --learning-rate 0.25 " },
        { "a split",   "  data: {path: /d, format: idx}\n  strategy: split\n  microbatches: 4\n", { .checkpoint = "", .stages = "0:1,2:3" },
          " --strategy split --microbatches 4 --stages 0:1,2:3 " },
        { "servers",   "  data: {path: /d, format: idx}\n  strategy: ps-ssp\n  staleness: 7\n", { .checkpoint = "", .servers = 3 },
          " --strategy ps-ssp --servers 3 --staleness 7 " },
        { "neighbours", "  data: {path: /d, format: idx}\n  neighbourExchange: 0.25\n", { .checkpoint = "" },
          " --neighbour-exchange 0.25 " },
        { "shares",    "  data: {path: /d, format: idx}\n", { .checkpoint = "", .shares = (const uint64_t[]){ 5, 3 }, .share_count = 2 },
          " --strategy allreduce --shares 5,3 " },
        { "segments that are found", "  data: {path: /d, format: idx}\n  segments: auto\n",
          { .checkpoint = "", .shares = (const uint64_t[]){ 5, 3 }, .share_count = 2, .segments = (const uint64_t[]){ 1, 4 }, .segment_count = 2 },
          " --shares 5,3 --segments 1,4 --evaluate" },
        { "segments to be found",    "  data: {path: /d, format: idx}\n  segments: auto\n",
          { .checkpoint = "", .shares = (const uint64_t[]){ 5, 3 }, .share_count = 2 },
          " --shares 5,3 --segments auto --evaluate" },
        { "segments of a cluster, whose shares are no arguments", "  data: {path: /d, format: idx}\n  segments: auto\n", { .checkpoint = "" },
          " --strategy allreduce --segments auto --evaluate" },
        { "no segments",             "  data: {path: /d, format: idx}\n  segments: none\n", { .checkpoint = "" },
          " --segments none --evaluate" },
        { "nothing to cut",          "  data: {path: /d, format: idx}\n  segments: auto\n  strategy: ps-sync\n", { .checkpoint = "", .servers = 1 },
          " --strategy ps-sync --servers 1 --evaluate" },
        { "segments of one worker",  "  data: {path: /d, format: idx}\n  segments: auto\n",
          { .checkpoint = "", .shares = (const uint64_t[]){ 8 }, .share_count = 1 },
          " --shares 8 --evaluate" },
        { "segments that it names",  "  data: {path: /d, format: idx}\n  segments: [1, 4]\n", { .checkpoint = "" },
          " --segments 1,4 --evaluate" },
        { "a checkpoint, from which it goes on", "  data: {path: /d, format: idx}\n  checkpoint: {everySteps: 9}\n",
          { .checkpoint = "/c", .resume = true }, " --evaluate --checkpoint /c --every 9 --resume" },
        { "logs",      "  data: {path: /d, format: idx}\n", { .checkpoint = "", .sample_log = "/s", .timeline = "/t" },
          " --evaluate --sample-log /s --timeline /t" },
};
/* clang-format on */

static void what_a_job_says_becomes_an_option(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(text_free) struct text line = { 0 };
                char yaml[512];
                struct arguments args = { 0 };
                struct err err = { 0 };
                struct job job;

                assert_true(text_format(yaml, sizeof(yaml), "%s%s", LEAST, rows[i].spec));
                if (job_yaml_parse(yaml, strlen(yaml), &job, &err) < 0)
                        fail_msg("%s: %s", rows[i].what, err.msg);
                job_arguments_add(&job, &rows[i].more, &args);
                assert_false(args.failed);
                for (size_t n = 0; n < args.count; n++)
                        text_printf(&line, "%s ", args.list[n]);
                if (line.failed || strstr(line.data, rows[i].options) == NULL)
                        fail_msg("%s: '%s' is not in '%s'", rows[i].what, rows[i].options,
                                 line.failed ? "" : line.data);
                arguments_free(&args);
                job_free(&job);
        }
}

/* A list has room for as many words as there are, and an end. */
static void a_list_grows_with_its_words(void **state)
{
        struct arguments args = { 0 };
        char word[16];

        (void) state;
        for (unsigned i = 0; i < 300; i++)
                arguments_add(&args, "%u", i);
        assert_false(args.failed);
        assert_int_equal(args.count, 300);
        assert_null(args.list[300]);
        for (unsigned i = 0; i < 300; i++) {
                (void) text_format(word, sizeof(word), "%u", i);
                assert_string_equal(args.list[i], word);
        }
        arguments_free(&args);
        assert_null(args.list);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_a_job_says_becomes_an_option),
                cmocka_unit_test(a_list_grows_with_its_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
