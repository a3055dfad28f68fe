/* Plan commands: lines as a person types them, each way of answering, and what each refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "planner/commands/plan.h"

enum { ARGUMENTS_MAX = 24 };

static int read_no_speeds(const char *store, const char *kubeconfig, struct plan_speeds_known *ret,
                          struct err *err)
{
        (void) ret;
        (void) kubeconfig;
        if (strcmp(store, "dir:/none") == 0)
                return err_set(err, -ENOENT, "there is none");
        (void) text_copy(ret->table.trouble, sizeof(ret->table.trouble), "its rows are of no use");
        return 0;
}

static int plan_ours(int argc, char **argv, const struct plan_host *host)
{
        (void) argc;
        (void) argv;
        (void) host;
        return EXIT_NOT_FOUND;
}

static const struct plan_command more[] = { { "ours", "of the program around it", plan_ours, NULL }, { 0 } };
static const struct plan_host hosts[] = {
        { .more = NULL },
        { .more = more, .read_speeds = read_no_speeds },
};

/* clang-format off */
#define WORKERS  "\"workers\":[{\"name\":\"a\",\"speed\":1000},{\"name\":\"b\",\"alpha_ms\":3,\"beta_ms\":2}]"
#define SLOW     "\"workers\":[{\"name\":\"a\",\"speed\":1000},{\"name\":\"b\",\"speed\":1000},{\"name\":\"slow\",\"alpha_ms\":500,\"beta_ms\":90}]"
#define TALK     ",\"communication\":{\"alpha_ms\":1,\"beta_ms_per_byte\":1e-7,\"bytes\":1000000}"
#define TENSORS  "{\"tensors\":[{\"name\":\"fc\",\"bytes\":4096,\"ready_ms\":0.5},{\"name\":\"in\",\"bytes\":9000,\"ready_ms\":1.25}]"
#define PROFILE  "node1 -- Input -- forward_compute_time=0.1, backward_compute_time=0.2, parameter_size=0.0\n\tnode1 -- node2\n" \
                 "node2 -- fc -- forward_compute_time=1, backward_compute_time=2, parameter_size=4096.0\n"
#define CHAIN    "{\"layers\":[{\"name\":\"in\",\"ms\":{\"gpu\":1.5,\"cpu\":9},\"memory_bytes\":8192,\"activation_bytes\":1024,\"params_bytes\":64}," \
                 "{\"name\":\"fc\",\"ms\":{\"gpu\":2,\"cpu\":5},\"memory_bytes\":8192,\"activation_bytes\":10}],"
#define DEVICES  "\"devices\":[{\"type\":\"gpu\",\"count\":1,\"memory_bytes\":80000,\"bytes_per_ms\":25000},{\"type\":\"cpu\",\"count\":1,\"memory_bytes\":9000,\"bytes_per_ms\":25000}]}"
#define NETWORK  "{\"name\":\"n\",\"operators\":[{\"name\":\"fc\",\"type\":\"linear\",\"output\":[64],\"inner\":64},{\"name\":\"out\",\"type\":\"linear\",\"output\":[8],\"inner\":64,\"inputs\":[\"fc\"]}]}"
#define GRAPH    "{\"maxSizePerFPGA\":1000,\"maxFPGAs\":2,\"maxCPUs\":1,\"nodes\":[" \
                 "{\"id\":1,\"size\":10,\"cpuLatency\":9,\"fpgaLatency\":1,\"supportedOnFpga\":1,\"isBackwardNode\":0}," \
                 "{\"id\":2,\"size\":10,\"cpuLatency\":9,\"fpgaLatency\":1,\"supportedOnFpga\":1,\"isBackwardNode\":0}]," \
                 "\"edges\":[{\"sourceId\":1,\"destId\":2,\"cost\":0.5}]}"
#define LAST     "{\"plan\":{\"batch\":10,\"workers\":[{\"name\":\"a\",\"batch\":5,\"begin\":0,\"end\":50},{\"name\":\"b\",\"batch\":5,\"begin\":50,\"end\":100}]},\"position\":20,"
#define MODEL    "model gpt2 --devices H100=1000,80*2 --devices A100=300,40*2 "

/* @: the file that holds `in`. */
static const struct {
        const char *what, *line, *in;
        size_t host;
        int code;
        const char *says;
} rows[] = {
        { "no planner",                "", "", 0, EXIT_USAGE, "usage: remuda plan PLANNER" },
        { "the help",                  "--help", "", 1, EXIT_DONE, "of the program around it" },
        { "the short help",            "-h", "", 0, EXIT_DONE, "which gradients travel together" },
        { "no such planner",           "magic", "", 0, EXIT_USAGE, "no planner 'magic'" },
        { "no such planner of two",    "magic", "", 1, EXIT_USAGE, "no planner 'magic'" },
        { "a planner of the program",  "ours", "", 1, EXIT_NOT_FOUND, "" },
        { "a planner's help",          "shards --help", "", 0, EXIT_DONE, "so that the slowest is done soonest" },
        { "help of segments",          "segments --help", "", 0, EXIT_DONE, "--max-segments" },
        { "help of split",             "split --help", "", 0, EXIT_DONE, "--time-limit" },
        { "help of reshard",           "reshard --help", "", 0, EXIT_DONE, "for the rest of an epoch" },
        { "help of model",             "model --help", "", 0, EXIT_DONE, "--microbatches" },
        { "no file",                   "shards /none", "", 0, EXIT_USAGE, "/none: cannot be opened" },
        { "a folder",                  "shards /", "", 0, EXIT_USAGE, "/: cannot be read" },
        { "no JSON",                   "shards @", "{1}", 0, EXIT_USAGE, "mend the JSON there" },
        { "half a file",               "shards @", "{\"batch\":", 0, EXIT_USAGE, "is it cut off?" },
        { "an empty file",             "shards @", "", 0, EXIT_USAGE, "is it cut off?" },
        { "standard input",            "shards -", "", 0, EXIT_USAGE, "standard input: line 1" },

        { "shards",                    "shards @", "{\"batch\":100,\"epoch\":1000," WORKERS "}", 0, EXIT_DONE, "\"begin\"" },
        { "shards, no epoch",          "shards @ -o table", "{\"batch\":100," WORKERS "}", 0, EXIT_DONE, "step ms\n" },
        { "shards as a table",         "shards @ -o table", "{\"batch\":100,\"epoch\":1000," WORKERS "}", 0, EXIT_DONE, "samples of the epoch" },
        { "groups as a table",         "shards @ -o table", "{\"batch\":100,\"groups\":[{\"name\":\"a-rack-with-a-long-name\"," WORKERS "},"
                                       "{\"name\":\"r2\",\"workers\":[{\"name\":\"a-worker-with-a-name-that-is-longer-than-forty\",\"speed\":5,\"max\":1}]}]}", 0, EXIT_DONE, "a-rack-with" },
        { "groups",                    "shards @", "{\"batch\":100,\"groups\":[{\"name\":\"r1\"," WORKERS "}]}", 0, EXIT_DONE, "\"groups\"" },
        { "groups and workers",        "shards @", "{\"batch\":100," WORKERS ",\"groups\":[{\"name\":\"r1\"," WORKERS "}]}", 0, EXIT_USAGE, "stands beside groups" },
        { "no workers",                "shards @", "{\"batch\":100}", 0, EXIT_USAGE, "workers: is missing" },
        { "a batch too large",         "shards @", "{\"batch\":100,\"workers\":[{\"name\":\"a\",\"speed\":1,\"max\":9}]}", 0, EXIT_USAGE, "100" },
        { "equal is not possible",     "shards @", "{\"batch\":10,\"workers\":[{\"name\":\"a\",\"speed\":1,\"max\":1},{\"name\":\"b\",\"speed\":1}]}", 0, EXIT_DONE, "\"equal_ms\": null" },
        { "the harmful dropped",       "shards @ --drop-harmful", "{\"batch\":100," SLOW TALK "}", 0, EXIT_DONE, "\"left_out\"" },
        { "the harmful in a table",    "shards @ --drop-harmful -o table", "{\"batch\":100," SLOW TALK "}", 0, EXIT_DONE, "slow" },
        { "what they say is missing",  "shards @ --drop-harmful", "{\"batch\":100," SLOW "}", 0, EXIT_USAGE, "communication: is missing" },
        { "a device and no store",     "shards @", "{\"batch\":100,\"workers\":[{\"name\":\"c\",\"device\":\"H100\"}]}", 0, EXIT_USAGE, "give --store" },
        { "a store and none here",     "shards @ --store dir:/none", "{\"batch\":100," WORKERS "}", 0, EXIT_USAGE, "this program has no stores" },
        { "a store that is not there", "shards @ --store dir:/none", "{\"batch\":100," WORKERS "}", 1, EXIT_NOT_FOUND, "--store dir:/none: there is none" },
        { "a table in trouble",        "shards @ --store dir:/x", "{\"batch\":100," WORKERS "}", 1, EXIT_DONE, "its rows are of no use" },
        { "a speed table of points",   "shards @", "{\"batch\":9,\"workers\":[{\"name\":\"a\",\"table\":[[1,5],[4,9],[8,30]]},{\"name\":\"b\",\"speed\":900,\"min\":2,\"multiple\":2}]}", 0, EXIT_DONE, "\"b\"" },

        { "segments",                  "segments @", TENSORS ",\"alpha_ms\":0.5,\"beta_ms_per_byte\":8.5e-7}", 0, EXIT_DONE, "exposed_ms" },
        { "segments as a table",       "segments @ -o table --max-segments 1", TENSORS ",\"alpha_ms\":0.5,\"beta_ms_per_byte\":8.5e-7}", 0, EXIT_DONE, "horovod_64mb" },
        { "segments of a profile",     "segments --profile @ --network 10gbe:4 --speedup 4", PROFILE, 0, EXIT_DONE, "\"estimate\": true" },
        { "of a measured network",     "segments --profile @ --network 56gib:16 -o table", PROFILE, 0, EXIT_DONE, "node2" },
        { "of a network's numbers",    "segments --profile @ --network 0.5,8.5e-7", PROFILE, 0, EXIT_DONE, "\"estimate\": false" },
        { "of no network",             "segments --profile @ --network 10gbe", PROFILE, 0, EXIT_USAGE, "--network 10gbe: give 10gbe:RANKS" },
        { "of an unknown network",     "segments --profile @ --network 40gbe:8", PROFILE, 0, EXIT_USAGE, "give 10gbe:RANKS" },
        { "of one with a long name",   "segments --profile @ --network 100gbe:8", PROFILE, 0, EXIT_USAGE, "give 10gbe:RANKS" },
        { "of one rank",               "segments --profile @ --network 10gbe:1", PROFILE, 0, EXIT_USAGE, "2 or more" },
        { "of words for ranks",        "segments --profile @ --network 10gbe:x", PROFILE, 0, EXIT_USAGE, "2 or more" },
        { "of too many ranks",         "segments --profile @ --network 10gbe:1000001", PROFILE, 0, EXIT_USAGE, "2 or more" },
        { "of a negative alpha",       "segments --profile @ --network=-1,1", PROFILE, 0, EXIT_USAGE, "ALPHA_MS,BETA_MS_PER_BYTE" },
        { "of a negative beta",        "segments --profile @ --network 1,-1", PROFILE, 0, EXIT_USAGE, "ALPHA_MS,BETA_MS_PER_BYTE" },
        { "of no alpha",               "segments --profile @ --network ,1", PROFILE, 0, EXIT_USAGE, "ALPHA_MS,BETA_MS_PER_BYTE" },
        { "of no beta",                "segments --profile @ --network 1,x", PROFILE, 0, EXIT_USAGE, "ALPHA_MS,BETA_MS_PER_BYTE" },
        { "of an alpha of 70 digits",  "segments --profile @ --network 1111111111111111111111111111111111111111111111111111111111111111111111,1", PROFILE, 0, EXIT_USAGE, "ALPHA_MS" },
        { "neither file nor profile",  "segments", "", 0, EXIT_USAGE, "give either FILE or --profile FILE" },
        { "both",                      "segments @ --profile @", PROFILE, 0, EXIT_USAGE, "give either FILE or --profile FILE" },
        { "a profile alone",           "segments --profile @", PROFILE, 0, EXIT_USAGE, "--profile needs --network" },
        { "a network without one",     "segments @ --network 10gbe:8", TENSORS "}", 0, EXIT_USAGE, "belong to --profile" },
        { "a speedup without one",     "segments @ --speedup 2", TENSORS "}", 0, EXIT_USAGE, "belong to --profile" },
        { "a speedup of nothing",      "segments --profile @ --network 10gbe:8 --speedup 0", PROFILE, 0, EXIT_USAGE, "--speedup must be" },
        { "a speedup past all",        "segments --profile @ --network 10gbe:8 --speedup 1e10", PROFILE, 0, EXIT_USAGE, "--speedup must be" },
        { "no profile",                "segments --profile /none --network 10gbe:8", "", 0, EXIT_USAGE, "cannot be opened" },
        { "a profile of nothing",      "segments --profile @ --network 10gbe:8", "", 0, EXIT_USAGE, "has no layers" },
        { "segments of no JSON",       "segments @", "[", 0, EXIT_USAGE, "is it cut off?" },
        { "ready times that fall",     "segments @", "{\"tensors\":[{\"name\":\"a\",\"bytes\":1,\"ready_ms\":2},{\"name\":\"b\",\"bytes\":1,\"ready_ms\":1}],\"alpha_ms\":1,\"beta_ms_per_byte\":1}", 0, EXIT_USAGE, "tensors[1].ready_ms" },
        { "a measured table",          "segments @", TENSORS ",\"cost\":[[0,0.5],[3,0.7],[10,0.71],[20000,9]]}", 0, EXIT_DONE, "exposed_ms" },
        { "a table that falls",        "segments @", TENSORS ",\"cost\":[[0,9],[10,1]]}", 0, EXIT_USAGE, "falls, and extended to" },
        { "a table of odd widths",     "segments @", TENSORS ",\"cost\":[[0,0.5],[999983,0.7],[1999952,0.71],[2999903,9],[4000070,10]]}", 0, EXIT_DONE, "exposed_ms" },

        { "a chain",                   "split @", CHAIN DEVICES, 0, EXIT_DONE, "\"stages\"" },
        { "a chain as a table",        "split @ -o table", CHAIN "\"schedule\":\"1f1b\",\"microbatches\":4," DEVICES, 0, EXIT_DONE, "gpu" },
        { "rows of a layer",           "split @ --rows fc", CHAIN DEVICES, 0, EXIT_USAGE, "layers[1]: has no rows" },
        { "rows of a layer with rows", "split @ --rows a", "{\"layers\":[{\"name\":\"a\",\"rows\":10,\"ms\":{\"gpu\":2,\"cpu\":5},\"memory_bytes\":8192,\"activation_bytes\":10}]," DEVICES, 0, EXIT_DONE, "rows" },
        { "rows of no layer",          "split @ --rows none", CHAIN DEVICES, 0, EXIT_USAGE, "none" },
        { "a chain that fits nowhere", "split @", CHAIN "\"devices\":[{\"type\":\"gpu\",\"count\":1,\"memory_bytes\":1,\"bytes_per_ms\":1}]}", 0, EXIT_USAGE, "" },
        { "a graph",                   "split @ --effort 100", GRAPH, 0, EXIT_DONE, "\"assignment\"" },
        { "a graph as a table",        "split @ -o table --time-limit 1", GRAPH, 0, EXIT_DONE, "" },
        { "a graph, contiguous",       "split @ --contiguous --effort 100", GRAPH, 0, EXIT_DONE, "\"assignment\"" },
        { "neither chain nor graph",   "split @", "{}", 0, EXIT_USAGE, "has neither layers" },
        { "no file for split",         "split", "", 0, EXIT_USAGE, "give either FILE or --network FILE" },
        { "two files for split",       "split @ --network @", "", 0, EXIT_USAGE, "give either FILE or --network FILE" },
        { "no time",                   "split @ --time-limit 0", CHAIN DEVICES, 0, EXIT_USAGE, "--time-limit must be" },
        { "too much time",             "split @ --time-limit 1000001", CHAIN DEVICES, 0, EXIT_USAGE, "--time-limit must be" },
        { "no efficiency",             "split @ --efficiency 0", CHAIN DEVICES, 0, EXIT_USAGE, "--efficiency must be" },
        { "more than all of it",       "split @ --efficiency 1.1", CHAIN DEVICES, 0, EXIT_USAGE, "--efficiency must be" },
        { "no link",                   "split @ --link 0", CHAIN DEVICES, 0, EXIT_USAGE, "--link must be" },
        { "a link past all",           "split @ --link 1e7", CHAIN DEVICES, 0, EXIT_USAGE, "--link must be" },
        { "a network",                 "split --network @ --devices H100=1000,80*2", NETWORK, 0, EXIT_DONE, "\"stages\"" },
        { "a network, forward alone",  "split --network @ --devices H100=1000*2 --inference -o table", NETWORK, 0, EXIT_DONE, "H100" },
        { "a network on nothing",      "split --network @", NETWORK, 0, EXIT_USAGE, "--network needs devices" },
        { "a network on no device",    "split --network @ --devices x=y", NETWORK, 0, EXIT_USAGE, "--devices" },
        { "no network",                "split --network /none --devices H100=1000,80*2", "", 0, EXIT_USAGE, "cannot be opened" },

        { "reshard",                   "reshard @", LAST "\"cost_ms\":0,\"measured\":[{\"name\":\"a\",\"step_ms\":1},{\"name\":\"b\",\"step_ms\":9}]}", 0, EXIT_DONE, "\"decision\"" },
        { "reshard as a table",        "reshard @ -o table", LAST "\"cost_ms\":0,\"measured\":[{\"name\":\"a\",\"step_ms\":1},{\"name\":\"b\",\"step_ms\":9}]}", 0, EXIT_DONE, "b" },
        { "a change not worth it",     "reshard @ -o table", LAST "\"cost_ms\":1e6,\"measured\":[{\"name\":\"a\",\"step_ms\":1},{\"name\":\"b\",\"step_ms\":1.1}]}", 0, EXIT_DONE, "keep" },
        { "one is gone",               "reshard @ -o table", LAST "\"cost_ms\":1,\"measured\":[{\"name\":\"a\",\"step_ms\":1},{\"name\":\"b\",\"gone\":true}]}", 0, EXIT_DONE, "b" },
        { "reshard of no plan",        "reshard @", "{}", 0, EXIT_USAGE, "is missing" },
        { "reshard of no JSON",        "reshard @", "nothing", 0, EXIT_USAGE, "mend the JSON" },

        { "the models",                "model", "", 0, EXIT_DONE, "\"llama3-70b\"" },
        { "the models as a table",     "model -o table", "", 0, EXIT_DONE, "Llama-3-70B" },
        { "no such model",             "model gpt9", "", 0, EXIT_NOT_FOUND, "no model 'gpt9'" },
        { "a name past all",           "model aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhhiiiiiiiiiijjjjjjjjjjkkkkkkkkkkllllllllllmmmmmmmmmm", "", 0, EXIT_NOT_FOUND, "no model" },
        { "a model's network",         "model resnet18", "", 0, EXIT_DONE, "operators" },
        { "a model's blocks",          "model resnet50 -o table", "", 0, EXIT_DONE, "multiply-adds" },
        { "one without a count",       "model llama3-8b -o table --tokens 16", "", 0, EXIT_DONE, "parameters" },
        { "too many tokens",           "model gpt2 --tokens 1025", "", 0, EXIT_USAGE, "takes sequences of 1 to 1024" },
        { "far too many tokens",       "model llama3-8b --tokens 99999999", "", 0, EXIT_USAGE, "takes sequences of 1 to" },
        { "a model on devices",        MODEL, "", 0, EXIT_DONE, "\"fits\": true" },
        { "a model on small ones",     "model gpt2 --devices x=10,0.5", "", 0, EXIT_DONE, "\"fits\": false" },
        { "as a table",                MODEL "-o table", "", 0, EXIT_DONE, "communication not counted" },
        { "on small ones as a table",  "model gpt2 -o table --devices x=10,0.5 --devices y=10", "", 0, EXIT_DONE, "not known" },
        { "forward alone",             MODEL "--inference", "", 0, EXIT_DONE, "forward, 2 bytes" },
        { "as split",                  MODEL "--as split", "", 0, EXIT_DONE, "\"layers\"" },
        { "as split, forward",         MODEL "--as split --inference", "", 0, EXIT_DONE, "\"inference\"" },
        { "as shards",                 MODEL "--as shards --batch 4096", "", 0, EXIT_DONE, "\"max\"" },
        { "as shards, forward",        MODEL "--as shards --inference", "", 0, EXIT_DONE, "A100-1" },
        { "as shards of no memory",    "model gpt2 --as shards --devices x=10", "", 0, EXIT_DONE, "does not limit" },
        { "as shards, too small",      "model gpt2 --as shards --devices x=10,0.5", "", 0, EXIT_USAGE, "it can have no share" },
        { "as shards, too many",       "model gpt2 --as shards --devices x=10*65537", "", 0, EXIT_USAGE, "65537" },
        { "on too many",               "model gpt2 --devices x=10*65537", "", 0, EXIT_USAGE, "65537" },
        { "as segments",               MODEL "--as segments --network 10gbe:16", "", 0, EXIT_DONE, "\"tensors\"" },
        { "as segments of no network", MODEL "--as segments", "", 0, EXIT_USAGE, "--network: is missing" },
        { "as segments of a wrong one", MODEL "--as segments --network x", "", 0, EXIT_USAGE, "--network x" },
        { "as split on nothing",       "model gpt2 --as split", "", 0, EXIT_USAGE, "needs devices" },
        { "the network, with devices", MODEL "--as network", "", 0, EXIT_DONE, "operators" },
        { "no share of the peak",      MODEL "--efficiency 0", "", 0, EXIT_USAGE, "--efficiency 0" },
        { "twice the peak",            MODEL "--efficiency 2", "", 0, EXIT_USAGE, "--efficiency 2" },
        { "no link",                   MODEL "--link 0", "", 0, EXIT_USAGE, "--link 0" },
        { "a link past all",           MODEL "--link 1e7", "", 0, EXIT_USAGE, "--link 1e+07" },
        { "devices of no form",        "model gpt2 --devices *2", "", 0, EXIT_USAGE, "--devices" },
        { "machines that are none",    "model gpt2 --machines @", "{", 0, EXIT_USAGE, "is it cut off?" },
        { "no such option",            "model --nothing", "", 0, EXIT_USAGE, "--nothing" },
};
/* clang-format on */

static void put(const char *path, const char *bytes)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(bytes, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* Both outputs go to one file while the line runs, and standard input is empty. */
static int run(const char *line, const char *in_path, const char *out_path, const struct plan_host *host)
{
        char *copy = strdup(line), *argv[ARGUMENTS_MAX + 1] = { (char *) "plan" }, *rest = copy;
        int argc = 1, code, kept[3], out = open(out_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
            in = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_non_null(copy);
        assert_true(out >= 0 && in >= 0);
        for (char *word; argc < ARGUMENTS_MAX && (word = strtok_r(rest, " ", &rest)) != NULL;)
                argv[argc++] = strcmp(word, "@") == 0 ? (char *) in_path : word;
        (void) fflush(NULL);
        for (int fd = 0; fd < 3; fd++) {
                kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                assert_true(kept[fd] >= 0 && dup2(fd == 0 ? in : out, fd) == fd);
        }
        code = plan_run(host, argc, argv);
        (void) fflush(NULL);
        for (int fd = 0; fd < 3; fd++) {
                (void) dup2(kept[fd], fd);
                (void) close(kept[fd]);
        }
        (void) close(in);
        (void) close(out);
        free(copy);
        return code;
}

static char *read_whole(const char *path)
{
        FILE *file = fopen(path, "r");
        char *bytes = calloc(1, 1 << 22);

        assert_non_null(file);
        assert_non_null(bytes);
        assert_true(fread(bytes, 1, (1 << 22) - 1, file) < (1 << 22) - 1);
        (void) fclose(file);
        return bytes;
}

static void each_line_is_answered(void **state)
{
        char folder[] = "/tmp/test_plan_commands.XXXXXX", in[64], out[64];
        unsigned wrong = 0;

        (void) state;
        assert_non_null(mkdtemp(folder));
        assert_true(text_format(in, sizeof(in), "%s/in", folder));
        assert_true(text_format(out, sizeof(out), "%s/out", folder));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(free_p) char *said = NULL;
                int code;

                put(in, rows[i].in);
                code = run(rows[i].line, in, out, &hosts[rows[i].host]);
                said = read_whole(out);
                if (code == rows[i].code && strstr(said, rows[i].says) != NULL)
                        continue;
                print_error("%s: plan %s: exit %d, not %d with '%s':\n%.800s\n", rows[i].what, rows[i].line,
                            code, rows[i].code, rows[i].says, said);
                wrong++;
        }
        assert_int_equal(wrong, 0);
        assert_int_equal(unlink(in), 0);
        assert_int_equal(unlink(out), 0);
        assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_line_is_answered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
