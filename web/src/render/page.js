"use strict";(()=>{document.title="sonde";})();
