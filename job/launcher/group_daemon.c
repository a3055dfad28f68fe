/* mpirun's daemon on a group: orted, and nothing else, in a folder of its own. */
#include "job/launcher/group_daemon.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/remove_folder.h"
#include "job/launcher/environment.h"
#include "job/launcher/rendezvous.h"
#include "job/launcher/supervise.h"

/* mpirun quotes for a shell; there is none here. " orted" and "\"env\"" become orted and env. */
static char *plain_word(char *word)
{
        size_t length;

        while (*word == ' ')
                word++;
        length = strlen(word);
        if (length >= 2 && word[0] == '"' && word[length - 1] == '"') {
                word[length - 1] = '\0';
                word++;
        }
        return word;
}

static int set_environment(const struct group_daemon *daemon, struct environment *environment)
{
        int r = 0;

        for (char *const *variable = environ; r == 0 && *variable != NULL; variable++) {
                const char *equals = strchr(*variable, '=');
                char name[256];

                if (equals == NULL || (size_t) (equals - *variable) >= sizeof(name))
                        continue;
                memcpy(name, *variable, (size_t) (equals - *variable));
                name[equals - *variable] = '\0';
                if (!text_starts_with(name, "OMPI_") && !text_starts_with(name, "PMIX_"))
                        r = environment_set(environment, name, equals + 1);
        }
        if (r == 0)
                r = environment_set(environment, "TMPDIR", daemon->folder);
        if (r == 0)
                r = environment_set(environment, "PMIX_MCA_gds", "hash");
        if (r == 0) /* the group's own table and subtask, whatever the manager's command line says */
                r = environment_set(environment, "REMUDA_LAUNCH_PROGRAMS", daemon->programs);
        if (r == 0)
                r = environment_set(environment, "REMUDA_LAUNCH_RANK_FILE", daemon->rank_file);
        if (r == 0)
                r = environment_set(environment, "OMPI_MCA_btl_vader_backing_directory", daemon->folder);
        return r;
}

int group_daemon_start(struct group_daemon *daemon, char **argv, size_t argc, pid_t *ret, struct err *err)
{
        struct environment environment = { 0 };
        CLEANUP(free_p) char **words = calloc(argc + 1, sizeof(*words));
        char path[PATH_MAX], log[PATH_MAX];
        const char *name;
        int r = 0;

        if (words == NULL)
                return err_set(err, -ENOMEM, "no memory for orted's line");
        if (argc > 0)
                memcpy(words, argv, argc * sizeof(*words));

        for (size_t i = 0; i < argc; i++) {
                const char *plain = plain_word(argv[i]);

                memmove(argv[i], plain, strlen(plain) + 1);
        }
        name = argc == 0 ? "" : strrchr(argv[0], '/');
        name = name == NULL ? argv[0] : name;
        if (strcmp(name[0] == '/' ? name + 1 : name, "orted") != 0)
                return err_set(err, -EPERM, "'%.80s' is not orted, and nothing else is started here", name);
        if (program_file_find("orted", path, sizeof(path)) < 0)
                return err_set(err, -ENOENT, "orted is not in PATH; install Open MPI on this host");
        r = private_folder(daemon->folder, sizeof(daemon->folder), SUPERVISE_FOLDER);
        if (r < 0)
                return err_set(err, r, "no folder of its own below TMPDIR or /tmp: %s", strerror(-r));
        r = set_environment(daemon, &environment);
        (void) text_format(log, sizeof(log), "%s/orted.log", daemon->work);
        if (r == 0) {
                *ret = rendezvous_spawn(path, words, environment.variables, log, daemon->folder);
                r = *ret < 0 ? (int) *ret : 0;
        }
        environment_free(&environment);
        if (r == 0)
                return 0;
        remove_folder(daemon->folder, SUPERVISE_FOLDER);
        daemon->folder[0] = '\0';
        return err_set(err, r, "orted could not be started: %s", strerror(-r));
}
