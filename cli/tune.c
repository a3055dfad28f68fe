/* remuda tune: search what a build of the reference trainer can be tuned by on this machine. The program
 * beside this one does the work; see remuda-train(1). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_code.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/commands.h"
#include "io/process.h"
#include "job/spec/job_role.h"

struct tune_options {
        const char *runtime, *cache, *program;
};

#define AT(member) offsetof(struct tune_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "runtime", .type = OPTION_STRING, .offset = AT(runtime), .value = "NAME", .default_ = "sunway",
          .help = "whose build is tuned: cpu, opencl or sunway" },
        { .name = "cache", .type = OPTION_STRING, .offset = AT(cache), .value = "FILE",
          .help = "where the result is kept (~/.cache/remuda/tuned)" },
        { .name = "program", .type = OPTION_STRING, .offset = AT(program), .value = "PATH",
          .help = "the trainer, where it is not beside this program" },
        { 0 },
};
/* clang-format on */

const struct option_program command_tune_options = {
        .name = "remuda tune",
        .summary =
                "Searches what the trainer's kernels can be tuned by on this machine and remembers the best.",
        .specs = specs,
};

/* The trainer of a runtime in the folder of this very program. Return: false if the names are too long. */
static bool beside(char *path, size_t path_bytes, const char *runtime)
{
        char name[64];

        return text_format(name, sizeof(name), "remuda-train-%s", runtime) &&
               process_beside(path, path_bytes, name);
}

int command_tune(int argc, char **argv)
{
        struct tune_options options = { 0 };
        int code = options_start(&command_tune_options, REMUDA_VERSION, argc, argv, &options, NULL, stdout,
                                 stderr);
        char path[4096], cache[4096];
        char *arguments[4] = { path, (char[]){ "--tune" }, NULL, NULL };

        if (code >= 0)
                return code;
        if (!job_role_runtime_valid(options.runtime) ||
            !(options.program != NULL ? text_copy(path, sizeof(path), options.program)
                                      : beside(path, sizeof(path), options.runtime))) {
                (void) fprintf(stderr, "remuda tune: --runtime '%s' is no runtime's name\n", options.runtime);
                return EXIT_USAGE;
        }
        if (options.cache != NULL) {
                if (!text_format(cache, sizeof(cache), "--cache=%s", options.cache)) {
                        (void) fprintf(stderr, "remuda tune: --cache: the file's name is too long\n");
                        return EXIT_USAGE;
                }
                arguments[2] = cache;
        }
        (void) execv(path, arguments);
        (void) fprintf(stderr, "remuda tune: program '%s': %s: --program says where it is\n", path,
                       strerror(errno));
        return EXIT_NOT_FOUND;
}
