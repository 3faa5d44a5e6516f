import numpy as np
from tektite.trace.batch import Batch
class Version:
    def __init__(self, batches):
        self.batches=tuple(batches); self.table=np.array([b.at for b in batches if b.n],np.int64); self.rows=sum(b.n for b in batches); self.bytes=0
EMPTY=Version(())
class Spine:
    def __init__(self, shape, effort, frontier):
        self.version=EMPTY; self.bytes=0
    def insert(self,b): self.version=Version((*self.version.batches,b))
    def idle(self,f): return False
