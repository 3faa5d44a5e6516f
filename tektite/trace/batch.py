class Batch:
    __slots__ = ("head","keep","n","at","lower","upper","since")
    def __init__(self, head, keep, lower, upper, since):
        self.head=head; self.keep=keep; self.n=int(head[0]); self.at=int(head[1]); self.lower=lower; self.upper=upper; self.since=since
