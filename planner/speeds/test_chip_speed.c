/* Chip speed: every case of which figure counts, and the shares that follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/speeds.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "planner/shards/shards.h"
#include "planner/speeds/chip_speed.h"

#define MEMBERS_MAX 4

/* Chips as a case names them: the peaks are those of the vendors' rows, what follows is put on top.
 *      +k N  a kernel's GFLOP/s in fp32     +h N  in fp16
 *      +m N  a measured beta of N ms        -p    without its peaks       +e  they are estimated */
struct chip {
        const char *vendor, *model, *more;
};

struct speeds_case {
        const char *what;
        struct chip chips[MEMBERS_MAX];
        const char *source, *precision, *lacking; /* "source", "precision", "the lacking one's model" */
        uint64_t shares[MEMBERS_MAX];             /* of 1024 */
};

#define H100                                                                                                 \
        {                                                                                                    \
                "nvidia", "H100-SXM5-80GB", ""                                                               \
        }
#define V100                                                                                                 \
        {                                                                                                    \
                "nvidia", "V100-SXM2-16GB", ""                                                               \
        }
#define A910                                                                                                 \
        {                                                                                                    \
                "huawei", "Ascend910A", ""                                                                   \
        }
#define B910                                                                                                 \
        {                                                                                                    \
                "huawei", "Ascend910B", ""                                                                   \
        }
#define ODD                                                                                                  \
        {                                                                                                    \
                "x", "Odd", ""                                                                               \
        } /* nobody has heard of it */
#define CPU                                                                                                  \
        {                                                                                                    \
                "x", "CPU", "+f 2 +e"                                                                        \
        }
#define P(more)                                                                                              \
        { "nvidia", "H100-SXM5-80GB", more },                                                                \
        {                                                                                                    \
                "nvidia", "V100-SXM2-16GB", more                                                             \
        }

/* clang-format off */
static const struct speeds_case cases[] = {
        /* one precision that all have */
        { "bf16 and fp16 against fp16", { H100, V100 }, "table", "fp16", "", { 909, 115 } },
        { "two generations, both bf16", { H100, { "nvidia", "A100-SXM4-40GB", "" } }, "table", "bf16", "", { 779, 245 } },
        { "across vendors", { H100, A910 }, "table", "fp16", "", { 814, 210 } },
        { "one that has fp32 alone", { H100, V100, { "x", "Odd", "+f 12" } }, "table", "fp32", "", { 725, 170, 129 } },
        { "the same, twice", { V100, V100 }, "table", "fp16", "", { 512, 512 } },
        /* an estimate stands for every precision */
        { "a processor beside a GPU", { H100, CPU }, "table", "bf16", "", { 1022, 2 } },
        { "and beside chips that have fp16 alone", { A910, CPU }, "table", "fp16", "", { 1017, 7 } },
        { "processors alone are fp32", { CPU, CPU }, "table", "fp32", "", { 512, 512 } },
        { "H100, 910B and a processor", { H100, B910, CPU }, "table", "bf16", "", { 777, 246, 1 } },
        /* no precision that all have */
        { "fp16 alone against fp32 alone", { A910, { "x", "Odd", "+f 128" } }, "table", "mixed", "", { 683, 341 } },
        { "each by its highest", { H100, A910, { "x", "Odd", "+f 10" } }, "table", "mixed", "", { 807, 209, 8 } },
        /* kernels */
        { "kernels of all", { P("+k 40000"), }, "kernel", "fp32", "", { 512, 512 } },
        { "kernels of all, unlike", { { "nvidia", "H100-SXM5-80GB", "+k 30000" }, { "x", "Odd", "+k 10000" } }, "kernel", "fp32", "", { 768, 256 } },
        { "the kernel of one alone", { { "nvidia", "H100-SXM5-80GB", "+k 30000" }, V100 }, "table", "fp16", "", { 909, 115 } },
        { "kernels of two precisions", { { "nvidia", "H100-SXM5-80GB", "+k 30000" }, { "nvidia", "V100-SXM2-16GB", "+h 90000" } }, "table", "fp16", "", { 909, 115 } },
        { "a kernel stands for a data sheet that nobody has", { H100, { "x", "Odd", "+k 33500" } }, "table", "fp32", "", { 683, 341 } },
        { "and not for one of another precision", { A910, { "x", "Odd", "+k 128000" } }, "table", "mixed", "", { 683, 341 } },
        /* measured */
        { "measured of all", { { "nvidia", "H100-SXM5-80GB", "+m 1" }, { "nvidia", "V100-SXM2-16GB", "+m 3" } }, "measured", "", "", { 768, 256 } },
        { "measured of all before their kernels", { { "nvidia", "H100-SXM5-80GB", "+m 1 +k 10" }, { "nvidia", "V100-SXM2-16GB", "+m 3 +k 10" } }, "measured", "", "", { 768, 256 } },
        { "measured where nothing else is known", { { "x", "Odd", "+m 1" }, { "x", "Odder", "+m 3" } }, "measured", "", "", { 768, 256 } },
        { "one is not measured, all have kernels", { { "nvidia", "H100-SXM5-80GB", "+m 1 +k 10" }, { "nvidia", "V100-SXM2-16GB", "+k 10" } }, "kernel", "fp32", "", { 512, 512 } },
        { "one is not measured, none has a kernel", { { "nvidia", "H100-SXM5-80GB", "+m 1" }, V100 }, "table", "fp16", "", { 909, 115 } },
        /* nothing to compare by */
        { "one has nothing", { H100, ODD }, "assumed", "", "Odd", { 512, 512 } },
        { "one has nothing, the others kernels", { P("+k 10"), ODD }, "assumed", "", "Odd", { 342, 342, 340 } },
        { "nobody has", { ODD, { "x", "Odder", "" } }, "assumed", "", "Odd", { 512, 512 } },
        { "a measurement has no peer", { H100, { "x", "Odd", "+m 1" } }, "assumed", "", "Odd", { 512, 512 } },
        { "one alone", { ODD }, "assumed", "", "Odd", { 1024 } },
};
/* clang-format on */

static double number_after(const char *more, const char *word)
{
        const char *found = strstr(more, word);

        return found == NULL ? 0 : strtod(found + strlen(word), NULL);
}

static struct chip_speed_member member_of(const struct chip *chip)
{
        const struct speed *row = speed_find(chip->vendor, chip->model);
        struct chip_speed_member ret = { .program = "aa", .device = chip->model };

        if (row != NULL && strstr(chip->more, "-p") == NULL) {
                ret.figures.tflops[CHIP_SPEED_BF16] = row->bf16;
                ret.figures.tflops[CHIP_SPEED_FP16] = row->fp16;
                ret.figures.tflops[CHIP_SPEED_FP32] = row->fp32;
        }
        if (number_after(chip->more, "+f") > 0)
                ret.figures.tflops[CHIP_SPEED_FP32] = number_after(chip->more, "+f");
        ret.figures.estimated = strstr(chip->more, "+e") != NULL;
        ret.figures.kernel_gflops = number_after(chip->more, "+k") + number_after(chip->more, "+h");
        ret.figures.kernel_precision = number_after(chip->more, "+h") > 0 ? CHIP_SPEED_FP16 : CHIP_SPEED_FP32;
        return ret;
}

static void add_row(struct speed_table *table, const char *device, double beta_ms)
{
        struct speed_table_row *row = &table->rows[table->count++];

        *row = (struct speed_table_row){ .program = "aa", .model = "mlp", .beta_ms = beta_ms };
        (void) text_copy(row->device, sizeof(row->device), device);
}

static void check_case(const struct speeds_case *c)
{
        struct speed_table_row rows[MEMBERS_MAX];
        struct speed_table table = { .rows = rows };
        struct chip_speed_member members[MEMBERS_MAX];
        struct shard_worker workers[MEMBERS_MAX] = { { .name = NULL } };
        struct shard shards[MEMBERS_MAX];
        struct chip_speed_verdict speeds;
        size_t count = 0;

        for (; count < MEMBERS_MAX && c->chips[count].vendor != NULL; count++) {
                const struct chip *chip = &c->chips[count];

                members[count] = member_of(chip);
                if (number_after(chip->more, "+m") > 0)
                        add_row(&table, chip->model, number_after(chip->more, "+m"));
        }
        speeds = chip_speed_find(&table, "mlp", members, count, workers);
        if (strcmp(chip_speed_names[speeds.source], c->source) != 0 ||
            strcmp(chip_speed_precision_names[speeds.precision], c->precision) != 0 ||
            (speeds.source == CHIP_SPEED_ASSUMED && strcmp(c->chips[speeds.lacking].model, c->lacking) != 0))
                fail_msg("%s: %s '%s', lacking %zu", c->what, chip_speed_names[speeds.source],
                         chip_speed_precision_names[speeds.precision], speeds.lacking);
        assert_int_equal(shards_cut(workers, count, 1024, true, shards, NULL, NULL), 0);
        for (size_t i = 0; i < count; i++)
                if (shards[i].batch != c->shares[i])
                        fail_msg("%s: member %zu takes %llu", c->what, i,
                                 (unsigned long long) shards[i].batch);
}

static void every_case_has_its_figure(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                check_case(&cases[i]);
}

/* "H100 (shared by 2)" where that was seen; else a part of the chip, of whatever kind the figure is. */
static void ranks_share_a_chip(void **state)
{
        const struct chip chip = H100;
        struct speed_table_row rows[2];
        struct speed_table table = { .rows = rows };
        struct chip_speed_member members[2] = { member_of(&chip), member_of(&chip) };
        struct shard_worker workers[2] = { { .name = NULL } };
        double part;

        (void) state;
        members[1].ranks_a_chip = 2;
        assert_int_equal(chip_speed_find(NULL, "mlp", members, 2, workers).source, CHIP_SPEED_TABLE);
        assert_true(workers[0].speed == 989000 && workers[1].speed == 494500);
        add_row(&table, chip.model, 2);
        assert_int_equal(chip_speed_find(&table, "mlp", members, 2, workers).source, CHIP_SPEED_MEASURED);
        assert_true(workers[0].beta_ms == 2 && workers[1].beta_ms == 4);
        add_row(&table, "H100-SXM5-80GB (shared by 2)", 3);
        (void) chip_speed_find(&table, "mlp", members, 2, workers);
        assert_true(workers[0].beta_ms == 2 && workers[1].beta_ms == 3);
        assert_null(chip_speed_row(&table, "cnn", &members[0], &part)); /* another model's says nothing */
        members[0].program = "bb";
        assert_null(chip_speed_row(&table, "mlp", &members[0], &part)); /* nor another program's */
        members[0].program = ""; /* any, where it is not known which runs */
        assert_non_null(chip_speed_row(&table, "mlp", &members[0], &part));
}

/* What one namespace says of a program that nobody vouches for is read by nobody else. */
static void a_name_of_ones_own_speaks_of_itself(void **state)
{
        static char *command[] = { "/x", "y" };
        const struct speed_table_words both = { command, 2 }, first = { command, 1 },
                                       second = { command + 1, 1 }, none = { NULL, 0 };
        static const struct {
                const char *row, *asked;
                enum speed_table_speaks speaks;
        } answers[] = {
                { "aa", "aa", SPEED_TABLE_SURELY },       { "aa", "bb", SPEED_TABLE_NOT },
                { "aa", "", SPEED_TABLE_SURELY },         { "aa", NULL, SPEED_TABLE_SURELY },
                { "-", "aa", SPEED_TABLE_PERHAPS },       { "-", "own:1", SPEED_TABLE_PERHAPS },
                { "own:1", "own:1", SPEED_TABLE_SURELY }, { "own:1", "own:2", SPEED_TABLE_NOT },
                { "own:1", "aa", SPEED_TABLE_NOT },       { "own:1", "", SPEED_TABLE_NOT },
                { "own:1", NULL, SPEED_TABLE_NOT },       { "aa", "own:1", SPEED_TABLE_NOT },
        };
        char a[SHA256_HEX_BYTES], b[SHA256_HEX_BYTES];

        (void) state;
        for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
                if (speed_table_speaks_of(answers[i].row, answers[i].asked) != answers[i].speaks)
                        fail_msg("%s asked by %s", answers[i].row, answers[i].asked);
        speed_table_own("n", "i", both, none, a);
        speed_table_own("n", "i/x", second, none, b);
        assert_string_not_equal(a, b);
        speed_table_own("n", "i", both, none, b);
        assert_string_equal(a, b);
        speed_table_own("n", "i", first, second, b); /* a command's words and a job's are one line */
        assert_string_equal(a, b);
        speed_table_own("n", "i", both, second, b);
        assert_string_not_equal(a, b);
}

static void a_program_is_its_content_and_its_arguments(void **state)
{
        static const char content[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                          other[] = "baaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        static char *words[] = { "train.py", "--model",  "gpt",     "train.py--model",
                                 "gpt",      "train.py", "--model", "gpt2" };
        const struct {
                const char *content;
                char *const *words;
                size_t count;
        } programs[] = {
                { content, words, 0 }, { content, words, 1 },     { content, words, 2 },
                { content, words, 3 }, { content, words + 3, 2 }, { content, words + 5, 3 },
                { other, words, 3 },
        };
        char names[ARRAY_SIZE(programs)][SHA256_HEX_BYTES], again[SHA256_HEX_BYTES];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                speed_table_program(programs[i].content, programs[i].words, programs[i].count, names[i]);
                assert_true(sha256_is_hex(names[i]));
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(names[i], names[k]);
        }
        assert_string_equal(names[0], content); /* as tables of before have it */
        speed_table_program(content, words, 3, again);
        assert_string_equal(again, names[3]);
        speed_table_program(again, NULL, 0, again);
        assert_string_equal(again, names[3]);
        speed_table_program("", words, 3, again); /* who is not known is not known by his arguments */
        assert_string_equal(again, "");
}

static void two_chips_are_one_kind_where_every_figure_is_the_same(void **state)
{
        const struct chip_speed_figures figures = { .tflops = { 1, 2, 3 }, .kernel_gflops = 4 };
        struct chip_speed_figures others[] = { figures, figures, figures, figures, figures, figures };

        (void) state;
        assert_true(chip_speed_same_figures(&figures, &figures));
        others[0].tflops[CHIP_SPEED_BF16] = 9;
        others[1].tflops[CHIP_SPEED_FP16] = 9;
        others[2].tflops[CHIP_SPEED_FP32] = 9;
        others[3].kernel_gflops = 9;
        others[4].kernel_precision = CHIP_SPEED_FP32;
        others[5].estimated = true;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (chip_speed_same_figures(&figures, &others[i]))
                        fail_msg("figure %zu may differ unseen", i);
}

static void a_chip_of_no_name_is_measured_by_nobody(void **state)
{
        static char program[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        struct speed_table_row row = { .beta_ms = 1 };
        const struct speed_table table = { .rows = &row, .count = 1 }, empty = { .count = 0 };
        struct chip_speed_member member = { .program = program };
        struct shard_worker worker = { .model = SHARD_SPEED };
        double part = 0;

        (void) state;
        assert_null(chip_speed_row(&table, "m", &member, &part));
        member.device = "";
        assert_null(chip_speed_row(&table, "m", &member, &part));
        member.device = "Odd";
        assert_null(chip_speed_row(&table, "m", &member, &part));
        assert_null(chip_speed_row(&empty, "m", &member, &part));
        assert_null(chip_speed_row(NULL, "m", &member, &part));
        assert_int_equal(chip_speed_find(NULL, "m", &member, 0, &worker).source, CHIP_SPEED_ASSUMED);
        chip_speed_rank(NULL, "m", &member, 1, &worker); /* nothing is known of any: it is last */
        assert_true(member.aside && worker.speed <= 0);
}

static void what_people_are_told(void **state)
{
        char sentence[CHIP_SPEED_REMARK_BYTES];
        struct chip_speed_verdict speeds = { .source = CHIP_SPEED_ASSUMED };

        (void) state;
        assert_string_equal(chip_speed_remark(&speeds, "w0-0 (Odd)", "n1", sentence), "SpeedAssumed");
        assert_string_equal(sentence,
                            "w0-0 (Odd) has no figure of speed to be compared by, so all count alike; "
                            "`remuda devices --measure --save` on n1 measures it");
        assert_string_equal(chip_speed_remark(&speeds, "w0-0 (Odd)", "", sentence), "SpeedAssumed");
        assert_non_null(strstr(sentence, "on this machine measures it"));
        speeds = (struct chip_speed_verdict){ .source = CHIP_SPEED_TABLE, .precision = CHIP_SPEED_MIXED };
        assert_string_equal(chip_speed_remark(&speeds, "", "", sentence), "SpeedMixed");
        speeds.precision = CHIP_SPEED_BF16;
        assert_null(chip_speed_remark(&speeds, "", "", sentence));
        assert_int_equal(chip_speed_precision("fp16"), CHIP_SPEED_FP16);
        assert_int_equal(chip_speed_precision("mixed"), CHIP_SPEED_FP32);
        assert_int_equal(chip_speed_precision(""), CHIP_SPEED_FP32);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_case_has_its_figure),
                cmocka_unit_test(ranks_share_a_chip),
                cmocka_unit_test(a_name_of_ones_own_speaks_of_itself),
                cmocka_unit_test(a_program_is_its_content_and_its_arguments),
                cmocka_unit_test(two_chips_are_one_kind_where_every_figure_is_the_same),
                cmocka_unit_test(a_chip_of_no_name_is_measured_by_nobody),
                cmocka_unit_test(what_people_are_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
