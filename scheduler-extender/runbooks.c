/* Runbooks: a name is looked up among those that are compiled in; what is not found there is not looked for.
 */
#include "scheduler-extender/runbooks.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define MARKDOWN "text/markdown; charset=utf-8"

static const struct runbook {
        const char *name, *text;
} pages[] = {
#include "scheduler-extender/runbooks.inc"
};

static const struct runbook *find(const char *name)
{
        for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
                if (strcmp(pages[i].name, name) == 0)
                        return &pages[i];
        return NULL;
}

bool runbooks_has(const char *name)
{
        return find(name) != NULL;
}

static void reply_list(struct http_reply *reply, unsigned status)
{
        CLEANUP(text_free) struct text list = { 0 };

        text_append(&list, status == 404 ? "There is no such runbook. " : "");
        text_append(&list, "These are here, as " RUNBOOKS_PATH "NAME:\n\n");
        for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
                text_printf(&list, "- [%s](" RUNBOOKS_PATH "%s)\n", pages[i].name, pages[i].name);
        if (list.failed)
                http_reply_error(reply, 503, "no memory");
        else
                http_reply_text(reply, status, MARKDOWN, list.data);
}

void runbooks_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        const char *name = request->path + strlen(RUNBOOKS_PATH);
        const struct runbook *page = find(name);

        (void) userdata;
        if (page != NULL)
                http_reply_text(reply, 200, MARKDOWN, page->text);
        else
                reply_list(reply, name[0] == '\0' ? 200 : 404);
}
