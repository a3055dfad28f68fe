/* Names and values of labels and annotations, as Kubernetes judges them. */
#include "job/spec/labels.h"

#include <errno.h>
#include <string.h>

#include "base/object_name.h"

static bool is_name(const char *name)
{
        const char *slash = strchr(name, '/');
        const char *word = slash == NULL ? name : slash + 1;

        if (slash != NULL && !object_name_dns_valid(name, (size_t) (slash - name)))
                return false;
        return object_name_word_valid(word);
}

static int check_one(const char *name, const json_t *value, const char *field, bool annotations,
                     struct err *err)
{
        const char *s = json_string_value(value);

        if (!is_name(name))
                return err_set(err, -EINVAL,
                               "%s: '%.100s' is not the name of a label; at most 63 letters, digits, '-', "
                               "'_' and '.', "
                               "such as team or example.com/team",
                               field, name);
        if (s == NULL)
                return err_set(err, -EINVAL, "%s.%.100s: a string is needed; put it in quotes", field, name);
        if (!annotations && s[0] != '\0' &&
            (strlen(s) != json_string_length(value) || !object_name_word_valid(s)))
                return err_set(err, -EINVAL,
                               "%s.%.100s: '%.100s' is not a label's value; at most 63 letters, digits, '-', "
                               "'_' and "
                               "'.', beginning and ending with a letter or digit",
                               field, name, s);
        return 0;
}

int labels_check(const json_t *labels, const char *field, bool annotations, struct err *err)
{
        const char *name;
        json_t *value;

        if (!json_is_object(labels))
                return err_set(err, -EINVAL, "%s: a mapping is needed, such as {team: vision}", field);
        json_object_foreach((json_t *) labels, name, value)
        {
                int r = check_one(name, value, field, annotations, err);

                if (r < 0)
                        return r;
        }
        return 0;
}
