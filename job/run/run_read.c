/* Reads what a run is made of: the job, the program table, the programs themselves, the size of the data. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/yaml/yaml_parse.h"
#include "io/process.h"
#include "io/read_file.h"
#include "job/run/run.h"
#include "job/spec/job_arguments.h"
#include "job/spec/job_yaml.h"
#include "job/stages/stage_profile.h"

int run_read_documents(const char *job_path, json_t **ret, struct err *err)
{
        CLEANUP(free_p) char *content = NULL;
        size_t size = 0;
        int r = read_file(job_path, JOB_FILE_MAX_BYTES, &content, &size, err);

        if (r == -E2BIG)
                return err_set(err, r, "job file '%.200s': larger than %zu bytes; jobs are short texts",
                               job_path, JOB_FILE_MAX_BYTES);
        if (r < 0)
                return err_set(err, r, "job file '%.200s': %s", job_path, strerror(-r));
        r = yaml_parse_all(content, size, ret, err);
        if (r < 0)
                return err_wrap(err, r, "job file '%.200s'", job_path);
        for (size_t i = 0; i < json_array_size(*ret);) { /* nothing stands between two `---` */
                const json_t *document = json_array_get(*ret, i);

                if (json_array_size(*ret) > 1 &&
                    (json_is_null(document) || (json_is_object(document) && json_object_size(document) == 0)))
                        (void) json_array_remove(*ret, i);
                else
                        i++;
        }
        return 0;
}

/* No ConfigMap is here; what it holds may be. */
static int lacks_profile(const struct job *job, struct err *err)
{
        const struct job_split_profile *profile = &job->profile;

        if (profile->map.name[0] == '\0')
                return 0;
        return err_set(err, -EINVAL,
                       "spec.profile.configMapKeyRef: the controller reads it, in a cluster; give --profile "
                       "FILE, the file that ConfigMap '%s' was made of (kubectl get configmap %s -o json | "
                       "jq -r '.data[\"%s\"]' >FILE)",
                       profile->map.name, profile->map.name, profile->map.key);
}

static int read_profile(struct job *job, const char *path, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        CLEANUP(job_split_profile_free) struct job_split_profile profile = { .samples = 1 };
        size_t size = 0;
        int r;

        if (path == NULL)
                return lacks_profile(job, err);
        if (job->strategy != JOB_STRATEGY_SPLIT)
                return err_set(
                        err, -EINVAL,
                        "--profile: it is for strategy split alone, and strategy is %s; leave it out, or "
                        "write strategy: split",
                        job_strategy_names[job->strategy]);
        if (job->shards == JOB_SHARDS_EQUAL)
                return err_set(err, -EINVAL,
                               "--profile: nothing follows it where shards are equal; leave it out, or write "
                               "shards: weighted");
        r = read_file(path, STAGE_PROFILE_MAX_BYTES, &bytes, &size, err);
        if (r < 0)
                return err_set(err, r, "--profile '%.200s': %s", path, strerror(-r));
        r = stage_profile_decode(bytes, size, &profile, err);
        if (r < 0)
                return err_wrap(err, -EINVAL, "--profile '%.200s'", path);
        job_split_profile_free(&job->profile);
        job->profile = profile;
        profile = (struct job_split_profile){ .samples = 1 };
        return job_split_check(job->stages, job->stage_count, job->profile.layer_count, err);
}

static int read_replicas(struct job *job, const char *word, struct err *err)
{
        uint64_t count = 0;

        if (word == NULL)
                return 0;
        if (strcmp(word, "auto") != 0 &&
            (text_parse_uint64(word, &count) < 0 || count == 0 || count > JOB_REPLICAS_MAX))
                return err_set(err, -EINVAL, "--replicas must be auto or a number in 1..%d",
                               JOB_REPLICAS_MAX);
        job->replicas = count;
        return job_check(job, err);
}

int run_read_split(struct job *job, const char *profile, const char *replicas, struct err *err)
{
        int r = read_profile(job, profile, err);

        return r < 0 ? r : read_replicas(job, replicas, err);
}

static int read_job(struct run *run, const char *path, const json_t *document, struct err *err)
{
        int r = job_yaml_decode(document, &run->job, err);

        if (r < 0)
                return err_wrap(err, r, "job file '%.200s'", path);
        return run_read_split(&run->job, run->options->profile, run->options->replicas, err);
}

static int find_launcher(struct run *run, struct err *err)
{
        char self[PATH_MAX] = "";
        const char *launcher = run->options->launcher;

        if (launcher == NULL)
                (void) process_beside(run->launcher, sizeof(run->launcher), "remuda-launch");
        else if (realpath(launcher, self) != NULL)
                (void) text_copy(run->launcher, sizeof(run->launcher), self);
        if (launcher != NULL && (run->launcher[0] == '\0' || access(run->launcher, X_OK) < 0))
                return err_set(
                        err, run->launcher[0] == '\0' ? -ENOENT : -EACCES,
                        "--launcher: '%.200s' is not a program that can be started; name remuda-launch",
                        launcher);
        if (run->launcher[0] == '\0' || access(run->launcher, X_OK) < 0)
                return err_set(err, -ENOENT,
                               "remuda-launch is not beside this program ('%.200s'); name it with --launcher",
                               run->launcher);
        return 0;
}

static int find_mpirun(struct run *run, struct err *err)
{
        const char *name = run->options->mpirun == NULL ? "mpirun" : run->options->mpirun;
        int r = program_file_find(name, run->mpirun, sizeof(run->mpirun));

        if (r == -ENOENT && strchr(name, '/') == NULL)
                return err_set(err, r,
                               "'%.200s' is not in PATH; install Open MPI or name it with --mpirun FILE",
                               name);
        return r < 0 ? err_set(err, r, "--mpirun: '%.200s' %s", name,
                               r == -ENOENT ? "is not there; install Open MPI, or name its mpirun"
                                            : "is not a file that may be executed; name Open MPI's mpirun")
                     : 0;
}

static int read_programs(struct run *run, struct err *err)
{
        const char *path = run->options->programs == NULL ? PROGRAM_TABLE_PATH : run->options->programs;
        char absolute[PATH_MAX], built[RUN_PATH_BYTES + 32];
        const char *slash;

        if (realpath(path, absolute) == NULL) {
                int missing = -errno;

                /* in a build that was not installed there is one beside bin/ */
                (void) text_format(built, sizeof(built), "%s", run->launcher);
                slash = strstr(built, "/bin/remuda-launch");
                if (slash != NULL)
                        (void) text_copy(built + (slash - built), sizeof(built) - (size_t) (slash - built),
                                         "/programs.yaml");
                if (slash == NULL || access(built, R_OK) < 0)
                        (void) text_copy(built, sizeof(built), "FILE");
                return err_set(err, missing,
                               "program table '%.200s': %s; name another with --programs %.400s", path,
                               strerror(-missing), built);
        }
        if (!text_copy(run->programs_path, sizeof(run->programs_path), absolute))
                return err_set(err, -ENAMETOOLONG, "program table '%.200s': the path is too long", path);
        return program_file_load(path, &run->table, err);
}

/* Samples of an epoch: the first size in the IDX header of the training images. 0 = could not be read, which
 * the program will say better. */
static uint64_t count_idx_samples(const char *folder)
{
        static const char *const names[] = { "train-images-idx3-ubyte", "train-images-idx3-ubyte.gz" };
        unsigned char header[8] = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[RUN_PATH_BYTES + 64];
                gzFile file;
                int size;

                (void) text_format(path, sizeof(path), "%s/%s", folder, names[i]);
                file = gzopen(path, "rbe");
                if (file == NULL)
                        continue;
                size = gzread(file, header, sizeof(header));
                (void) gzclose(file);
                if (size == (int) sizeof(header) && header[0] == 0 && header[1] == 0)
                        return (uint64_t) header[4] << 24 | (uint64_t) header[5] << 16 |
                               (uint64_t) header[6] << 8 | header[7];
        }
        return 0;
}

static int find_data(struct run *run, struct err *err)
{
        char absolute[PATH_MAX];

        run->trainer = job_arguments_taken(&run->job);
        if (!run->job.data.given)
                return 0;
        if (realpath(run->job.data.path, absolute) == NULL)
                return err_set(err, -ENOENT, "spec.data.path: '%.200s': %m; give a folder that is there",
                               run->job.data.path);
        if (!text_copy(run->job.data.path, sizeof(run->job.data.path), absolute))
                return err_set(err, -ENAMETOOLONG, "spec.data.path: '%.200s' is too long", absolute);
        if (run->job.data.format == JOB_FORMAT_IDX)
                run->data_samples = count_idx_samples(run->job.data.path);
        return 0;
}

int run_read(struct run *run, const char *job_path, const json_t *document, int *ret_exit_code,
             struct err *err)
{
        int r = read_job(run, job_path, document, err);

        if (r == 0)
                r = find_data(run, err);
        if (r == 0)
                r = find_launcher(run, err);
        if (r == 0)
                r = read_programs(run, err);
        if (r == 0)
                r = find_mpirun(run, err);
        if (r < 0)
                *ret_exit_code = exit_code_of(r);
        return r;
}
