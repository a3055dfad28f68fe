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
#include "io/private_folder.h"
#include "job/launcher/guard.h"
#include "job/launcher/supervise.h"
#include "job/plan/mpirun_line.h"

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

#define SEGMENTS "OMPI_MCA_btl_vader_backing_directory"

/* The group's own table and subtask, whatever the manager's command line says; nothing of another Open MPI
 * but how the site's ranks talk. */
static void set_environment(struct group_daemon *daemon)
{
        const char *segments = getenv(SEGMENTS);

        for (char **variable = environ; *variable != NULL;) {
                CLEANUP(free_p) char *name = strndup(*variable, strcspn(*variable, "="));

                if (name != NULL && (text_starts_with(name, "OMPI_") || text_starts_with(name, "PMIX_")) &&
                    !mpirun_line_is_site(name) && unsetenv(name) == 0)
                        variable = environ;
                else
                        variable++;
        }
        (void) setenv("REMUDA_LAUNCH_PROGRAMS", daemon->programs, 1);
        (void) setenv("REMUDA_LAUNCH_RANK_FILE", daemon->rank_file, 1);
        /* of the world before is not the site's: that folder went with it */
        (void) setenv(SEGMENTS, daemon->folder, segments != NULL && strcmp(segments, daemon->told) == 0);
        (void) text_format(daemon->told, sizeof(daemon->told), "%s", daemon->folder);
}

int group_daemon_start(struct group_daemon *daemon, char **argv, size_t argc, pid_t *ret, struct err *err)
{
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
        set_environment(daemon);
        (void) text_format(log, sizeof(log), "%s/orted.log", daemon->work);
        *ret = guard_start(&(struct guard_what){ .path = path,
                                                 .argv = words,
                                                 .log = log,
                                                 .folders = { daemon->folder },
                                                 .prefix = SUPERVISE_FOLDER,
                                                 .farewell_usec = 2000000,
                                                 .held = { -1, -1 } });
        r = *ret < 0 ? (int) *ret : 0;
        if (r == 0)
                return 0;
        private_folder_remove(daemon->folder, SUPERVISE_FOLDER);
        daemon->folder[0] = '\0';
        return err_set(err, r, "orted could not be started: %s", strerror(-r));
}
