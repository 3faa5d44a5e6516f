typedef __SIZE_TYPE__ size_t;
void *malloc(size_t);

struct node {
    struct node *next;
    struct node *other;
    int value;
};

static struct node *head;

struct node *find(struct node *from, int value) {
    while (from) {
        if (from->value == value) return from;
        from = from->next;
    }
    return 0;
}

int use(int value) {
    struct node *found = find(head, value);
    return found->value;
}

int checked(int value) {
    struct node *found = find(head, value);
    return found ? found->value : 0;
}

int through_memory(struct node *one, struct node *two, int value) {
    struct node *same = value ? one : two;
    one->other = 0;
    return same->other->value;
}

void begin(void) {
    head = malloc(sizeof *head);
    head->next = malloc(sizeof *head);
}
