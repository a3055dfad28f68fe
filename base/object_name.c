/* Labels of DNS, names of several, and words. */
#include "base/object_name.h"

#include <ctype.h>
#include <string.h>

bool object_name_label_valid(const char *name)
{
        size_t length = strlen(name);

        return length > 0 && length < OBJECT_NAME_LABEL_BYTES &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length && name[0] != '-' &&
               name[length - 1] != '-';
}

bool object_name_dns_valid(const char *name, size_t length)
{
        bool edge = true; /* the last character, or what comes before the first, parts two labels */

        for (size_t i = 0; i < length; i++) {
                bool letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
                bool last = i + 1 == length || name[i + 1] == '.';

                if (name[i] == '.' ? edge : !letter && (name[i] != '-' || edge || last))
                        return false;
                edge = name[i] == '.';
        }
        return length < OBJECT_NAME_DNS_BYTES && !edge;
}

bool object_name_word_valid(const char *word)
{
        size_t length = strlen(word);

        for (size_t i = 0; i < length; i++) {
                bool inside = i > 0 && i + 1 < length;

                if (!isalnum((unsigned char) word[i]) && !(inside && strchr("-_.", word[i]) != NULL))
                        return false;
        }
        return length > 0 && length < OBJECT_NAME_LABEL_BYTES;
}
