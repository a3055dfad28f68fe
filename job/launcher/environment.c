/* A growing list of NAME=value. */
#include "job/launcher/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */
/* What the launcher sets itself, here or by the rank file (job/plan/launch_frameworks.h). */
static const char *const framework_names[] = {
        /* torchrun */
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK",
        "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME", "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID",
        /* Ascend */
        "RANK_TABLE_FILE", "RANK_ID", "RANK_SIZE", "DEVICE_ID",
        /* MindSpore */
        "MS_WORKER_NUM", "MS_SERVER_NUM", "MS_LOCAL_WORKER", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_ROLE", "MS_NODE_ID",
        "MS_NODE_RANK",
        /* Paddle */
        "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT",
        "PADDLE_LOCAL_SIZE", "PADDLE_GLOBAL_SIZE", "PADDLE_RANK_IN_NODE", "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_PORT",
        "POD_IP", "TRAINING_ROLE",
};
static const char *const passing_prefixes[] = { "REMUDA_", "OMPI_", "PMIX_", "UCX_" };
/* clang-format on */

void environment_free(struct environment *environment)
{
        for (size_t i = 0; i < environment->count; i++)
                free(environment->variables[i]);
        free(environment->variables);
        *environment = (struct environment){ 0 };
}

static char **slot(const struct environment *environment, const char *name)
{
        size_t length = strlen(name);

        for (size_t i = 0; i < environment->count; i++)
                if (strncmp(environment->variables[i], name, length) == 0 &&
                    environment->variables[i][length] == '=')
                        return &environment->variables[i];
        return NULL;
}

const char *environment_get(const struct environment *environment, const char *name)
{
        char **at = slot(environment, name);

        return at == NULL ? NULL : *at + strlen(name) + 1;
}

static int append(struct environment *environment, char *variable)
{
        if (variable == NULL)
                return -ENOMEM;
        if (environment->count >= ENVIRONMENT_MAX) {
                free(variable);
                return -E2BIG;
        }
        if (environment->count + 1 >= environment->capacity) {
                size_t capacity = environment->capacity == 0 ? 128 : 2 * environment->capacity;
                char **grown = reallocarray(environment->variables, capacity, sizeof(*grown));

                if (grown == NULL) {
                        free(variable);
                        return -ENOMEM;
                }
                environment->variables = grown;
                environment->capacity = capacity;
        }
        environment->variables[environment->count++] = variable;
        environment->variables[environment->count] = NULL;
        return 0;
}

int environment_set(struct environment *environment, const char *name, const char *value)
{
        char **at = slot(environment, name);
        struct text t = { 0 };
        char *variable;

        text_printf(&t, "%s=%s", name, value);
        variable = text_take(&t, NULL);
        if (at == NULL)
                return append(environment, variable);
        if (variable == NULL)
                return -ENOMEM;
        free(*at);
        *at = variable;
        return 0;
}

static int set_default(struct environment *environment, const char *name, const char *value)
{
        return slot(environment, name) == NULL ? environment_set(environment, name, value) : 0;
}

static bool listed(const char *const *names, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

/* Is a variable passed on to this program? The names its table lists, or all of them; REMUDA_*,
 * OMPI_*, PMIX_*, UCX_*; every vendor's visible-devices variable; the frameworks' own (RANK, MASTER_ADDR...).
 * The loader's variables, and everything else, only when listed. */
static bool passes(const struct program_table_row *program, const char *name)
{
        if (program_table_passes(program, name))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(passing_prefixes); i++)
                if (text_starts_with(name, passing_prefixes[i]))
                        return true;
        return listed(framework_names, ARRAY_SIZE(framework_names), name) || vendor_is_variable(name);
}

int environment_filter(struct environment *ret, const struct program_table_row *program, char *const *found)
{
        char name[256];

        for (; *found != NULL; found++) {
                const char *equals = strchr(*found, '=');
                size_t length = equals == NULL ? 0 : (size_t) (equals - *found);

                if (length == 0 || length >= sizeof(name))
                        continue;
                memcpy(name, *found, length);
                name[length] = '\0';
                if (passes(program, name)) {
                        int r = environment_set(ret, name, equals + 1);

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static const char *find(char *const *found, const char *name)
{
        size_t length = strlen(name);

        for (; *found != NULL; found++)
                if (strncmp(*found, name, length) == 0 && (*found)[length] == '=')
                        return *found + length + 1;
        return NULL;
}

/* What mpirun says of this process counts more than a variable inherited from an outer job. */
static const char *place(const struct environment *environment, char *const *found, const char *mpi,
                         const char *plain, const char *otherwise)
{
        const char *value = find(found, mpi);

        if (value == NULL)
                value = environment_get(environment, plain);
        return value == NULL ? otherwise : value;
}

#define PLACE_BYTES 32

int environment_add_frameworks(struct environment *environment, char *const *found)
{
        char rank[PLACE_BYTES], size[PLACE_BYTES], local_rank[PLACE_BYTES], local_size[PLACE_BYTES];
        char address[256], port[PLACE_BYTES];
        int r = 0;

        (void) text_copy(rank, sizeof(rank), place(environment, found, "OMPI_COMM_WORLD_RANK", "RANK", "0"));
        (void) text_copy(size, sizeof(size),
                         place(environment, found, "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE", "1"));
        (void) text_copy(local_rank, sizeof(local_rank),
                         place(environment, found, "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK", rank));
        (void) text_copy(local_size, sizeof(local_size),
                         place(environment, found, "OMPI_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE", size));
        (void) text_copy(address, sizeof(address),
                         place(environment, found, "REMUDA_MASTER_ADDR", "MASTER_ADDR", "127.0.0.1"));
        (void) text_copy(port, sizeof(port),
                         place(environment, found, "REMUDA_MASTER_PORT", "MASTER_PORT", "29500"));

        /* clang-format off */
        const struct { const char *name, *value; bool ours; } rows[] = {
                { "RANK",                       rank,       true },
                { "WORLD_SIZE",                 size,       true },
                { "LOCAL_RANK",                 local_rank, true },
                { "LOCAL_WORLD_SIZE",           local_size, true },
                { "MASTER_ADDR",                address,    true },
                { "MASTER_PORT",                port,       true },
                { "GROUP_RANK",                 "0",        false },
                { "ROLE_RANK",                  rank,       false },
                { "ROLE_WORLD_SIZE",            size,       false },
                { "TORCHELASTIC_RESTART_COUNT", "0",        false },
                { "TORCHELASTIC_MAX_RESTARTS",  "0",        false },
                { "TORCHELASTIC_RUN_ID",        "none",     false },
                { "RANK_ID",                    rank,       true },
                { "RANK_SIZE",                  size,       true },
                { "DEVICE_ID",                  local_rank, false },
                { "MS_WORKER_NUM",              size,       false },
                { "MS_LOCAL_WORKER",            local_size, false },
                { "MS_SCHED_HOST",              address,    false },
                { "MS_SCHED_PORT",              port,       false },
                { "MS_ROLE",                    "MS_WORKER", false },
                { "MS_NODE_ID",                 rank,       false },
                { "PADDLE_TRAINER_ID",          rank,       false },
                { "PADDLE_TRAINERS_NUM",        size,       false },
        };
        /* clang-format on */
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
                r = rows[i].ours ? environment_set(environment, rows[i].name, rows[i].value)
                                 : set_default(environment, rows[i].name, rows[i].value);
        return r;
}
