/* Reads "WHAT JSON" a line, WHAT being shards, least (with --drop-harmful), reshard or segments, and answers
 * each on one line: the planner's JSON, or "error SENTENCE". So that 10^5 questions are one process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/segments/plan_segments.h"
#include "planner/shards/plan_reshard.h"
#include "planner/shards/plan_shards.h"
#include "planner/shards/plan_shards_text.h"

static int answer_shards(const json_t *json, bool least, struct text *out, struct err *err)
{
        struct plan_shards_request request;
        struct plan_shards_answer answer;
        int r = plan_shards_request_decode(json, NULL, NULL, &request, err);

        if (r < 0)
                return r;
        r = plan_shards_request_answer(&request, least, &answer, err);
        if (r == 0) {
                plan_shards_text_json(&request, &answer, out);
                plan_shards_answer_free(&answer);
        }
        plan_shards_request_free(&request);
        return r;
}

static int answer_segments(const json_t *json, struct text *out, struct err *err)
{
        struct plan_segments_request request;
        struct segments_plan plan;
        int r = plan_segments_request_decode(json, &request, err);

        if (r < 0)
                return r;
        r = plan_segments_request_answer(&request, &plan, err);
        if (r == 0) {
                plan_segments_answer_json(&request, &plan, out);
                segments_plan_free(&plan);
        }
        plan_segments_request_free(&request);
        return r;
}

static int answer_reshard(const json_t *json, struct text *out, struct err *err)
{
        struct plan_reshard_request request;
        struct reshard_plan plan;
        int r = plan_reshard_request_decode(json, &request, err);

        if (r < 0)
                return r;
        r = reshard_plan_make(&request.reshard, &plan, err);
        if (r == 0) {
                plan_reshard_answer_json(&request, &plan, out);
                reshard_plan_free(&plan);
        }
        plan_reshard_request_free(&request);
        return r;
}

static int answer(const char *what, const json_t *json, struct text *out, struct err *err)
{
        if (strcmp(what, "shards") == 0 || strcmp(what, "least") == 0)
                return answer_shards(json, strcmp(what, "least") == 0, out, err);
        if (strcmp(what, "segments") == 0)
                return answer_segments(json, out, err);
        if (strcmp(what, "reshard") == 0)
                return answer_reshard(json, out, err);
        return err_set(err, -1, "no planner '%s'", what);
}

int main(void)
{
        char *line = NULL;
        size_t room = 0;
        ssize_t size;

        while ((size = getline(&line, &room, stdin)) > 0) {
                struct text out = { 0 };
                struct err err = { 0 };
                json_error_t wrong;
                char *space = strchr(line, ' ');
                json_t *json;
                int r;

                if (space == NULL)
                        break;
                *space = '\0';
                json = json_loads(space + 1, JSON_REJECT_DUPLICATES, &wrong);
                r = json == NULL ? err_set(&err, -1, "%s", wrong.text) : answer(line, json, &out, &err);
                for (size_t i = 0; i < out.size_bytes; i++)
                        if (out.data[i] == '\n')
                                out.data[i] = ' ';
                printf("%s%s\n", r < 0 ? "error " : "", r < 0 ? err.msg : out.data);
                text_free(&out);
                json_decref(json);
        }
        free(line);
        return 0;
}
