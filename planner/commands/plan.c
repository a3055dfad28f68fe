/* Chooses the planner, reads its file, and prints its answer or what is wrong with the file. */
#include "planner/commands/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"

/* clang-format off */
static const struct plan_command own[] = {
        { "shards", "how much of each batch every worker takes", plan_shards, &plan_shards_options },
        { "reshard", "a new plan for the rest of an epoch", plan_reshard, &plan_reshard_options },
        { "segments", "which gradients travel together", plan_segments, &plan_segments_options },
        { "split", "which layers go to which device", plan_split, &plan_split_options },
        { "model", "a known network, and what it would do on given devices", plan_model, &plan_model_options },
};
/* clang-format on */

const struct plan_command *plan_command_at(const struct plan_host *host, size_t i)
{
        const struct plan_command *more = host->more;

        if (i < ARRAY_SIZE(own))
                return &own[i];
        for (i -= ARRAY_SIZE(own); more != NULL && more->name != NULL && i > 0; i--)
                more++;
        return more != NULL && more->name != NULL ? more : NULL;
}

static void print_help(const struct plan_host *host, FILE *out)
{
        const struct plan_command *c;

        fprintf(out,
                "usage: remuda plan PLANNER [OPTION...] ...\n\n"
                "Exact plans for training on unlike chips, from a file; nothing is changed.\n\nplanners:\n");
        for (size_t i = 0; (c = plan_command_at(host, i)) != NULL; i++)
                fprintf(out, "  %-10s %s\n", c->name, c->summary);
        fprintf(out, "\n`remuda plan PLANNER --help` says more; so does `man remuda-plan`.\n");
}

int plan_run(const struct plan_host *host, int argc, char **argv)
{
        const struct plan_command *command;

        if (argc < 2) {
                print_help(host, stderr);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
                print_help(host, stdout);
                return EXIT_DONE;
        }
        for (size_t i = 0; (command = plan_command_at(host, i)) != NULL; i++)
                if (strcmp(command->name, argv[1]) == 0)
                        break;
        if (command != NULL)
                return command->run(argc - 1, argv + 1, host);
        fprintf(stderr, "remuda plan: no planner '%s'; `remuda plan --help` lists them\n", argv[1]);
        return EXIT_USAGE;
}

int plan_read_bytes(const char *file, char **ret, size_t *ret_size_bytes, struct err *err)
{
        bool is_file = strcmp(file, "-") != 0;
        CLEANUP(close_p) int opened = is_file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
        int fd = is_file ? opened : STDIN_FILENO;
        struct text bytes = { .max_bytes = PLAN_INPUT_MAX_BYTES };
        char block[65536];
        ssize_t n;

        if (fd < 0)
                return err_set(err, -errno, "cannot be opened: %m");
        while ((n = read(fd, block, sizeof(block))) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        int r = err_set(err, -errno, "cannot be read: %m");

                        text_free(&bytes);
                        return r;
                }
                text_append_bytes(&bytes, block, (size_t) n);
                if (bytes.failed) {
                        text_free(&bytes);
                        return err_set(err, -E2BIG, "is larger than %zu MiB; plan parts of it",
                                       PLAN_INPUT_MAX_BYTES >> 20);
                }
        }
        *ret = text_take(&bytes, ret_size_bytes);
        return *ret != NULL ? 0 : err_set(err, -ENOMEM, "no memory to read it");
}

int plan_parse_json(const char *bytes, size_t size_bytes, json_t **ret, struct err *err)
{
        json_error_t wrong;

        *ret = json_loadb(bytes, size_bytes, JSON_REJECT_DUPLICATES, &wrong);
        if (*ret != NULL)
                return 0;
        if (json_error_code(&wrong) == json_error_out_of_memory)
                return err_set(err, -ENOMEM, "no memory to read it");
        if (json_error_code(&wrong) == json_error_premature_end_of_input)
                return err_set(err, -EBADMSG,
                               "line %d, column %d: %s; the file ends too early: is it cut off?", wrong.line,
                               wrong.column, wrong.text);
        return err_set(err, -EBADMSG, "line %d, column %d: %s; mend the JSON there", wrong.line, wrong.column,
                       wrong.text);
}

int plan_read_json(const char *file, json_t **ret, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size_bytes = 0;
        int r = plan_read_bytes(file, &bytes, &size_bytes, err);

        return r < 0 ? r : plan_parse_json(bytes, size_bytes, ret, err);
}

int plan_finish(const char *planner, const char *file, int r, struct text *answer, const struct err *err)
{
        size_t size_bytes = 0;
        CLEANUP(free_p) char *bytes = NULL;

        if (r < 0) {
                fprintf(stderr, "remuda plan %s: %s: %s\n", planner,
                        strcmp(file, "-") == 0 ? "standard input" : file, err->msg);
                text_free(answer);
                return err->code == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
        }
        bytes = text_take(answer, &size_bytes);
        if (bytes == NULL) {
                fprintf(stderr, "remuda plan %s: no memory for the answer\n", planner);
                return EXIT_FAILED;
        }
        if (fwrite(bytes, 1, size_bytes, stdout) != size_bytes || fflush(stdout) != 0) {
                fprintf(stderr, "remuda plan %s: standard output: %m\n", planner);
                return EXIT_FAILED;
        }
        return EXIT_DONE;
}
