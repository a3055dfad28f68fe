/* jansson's text or ours in YAML, with one newline at its end. */
#include "cli/command/document.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/yaml/yaml_dump.h"

int document_print(const json_t *value, bool yaml, size_t flags)
{
        CLEANUP(free_p) char *text = NULL;

        if (value != NULL)
                text = yaml ? yaml_dump(value) : json_dumps(value, JSON_INDENT(2) | flags);
        if (text == NULL)
                return -ENOMEM;
        printf("%s%s", text, text_ends_with(text, "\n") ? "" : "\n");
        return 0;
}
