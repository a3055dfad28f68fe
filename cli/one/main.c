/* The programs of a container image in one file, which is the one that it is called by: what they share is in
 * the image once. It has a link of each name (packaging/build-image); by any other name it is `remuda`.
 * Elsewhere each is a file of its own. */
#include <stddef.h>
#include <string.h>

int agent_main(int argc, char **argv);
int scheduler_extender_main(int argc, char **argv);
int job_controller_main(int argc, char **argv);
int cli_main(int argc, char **argv);

static const struct {
        const char *name;
        int (*main)(int argc, char **argv);
} programs[] = {
        { "remuda-agent", agent_main },
        { "remuda-extender", scheduler_extender_main },
        { "remuda-controller", job_controller_main },
};

int main(int argc, char **argv)
{
        const char *path = argc > 0 ? argv[0] : "", *slash = strrchr(path, '/'),
                   *name = slash != NULL ? slash + 1 : path;

        for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
                if (strcmp(name, programs[i].name) == 0)
                        return programs[i].main(argc, argv);
        return cli_main(argc, argv);
}
